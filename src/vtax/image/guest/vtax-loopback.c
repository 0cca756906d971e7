/* vtax-loopback.so: keeps the programs that load it (LD_PRELOAD) on this machine's loopback.
 *
 * Open MPI's mpirun, its daemons and the ranks listen on all addresses, or on the first that they find, whatever
 * interface they are told to use. Where all nodes share the network of one machine, nobody outside has to reach them:
 * every address that they bind or connect to becomes the loopback, but for those that are (127.0.0.0/8).
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

union address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
  struct sockaddr_storage space;
};

static in_addr_t inside(in_addr_t address) {
  return ntohl(address) >> 24 == IN_LOOPBACKNET ? address : htonl(INADDR_LOOPBACK);
}

static void keep_inside(union address *one) {
  if (one->any.sa_family == AF_INET) one->v4.sin_addr.s_addr = inside(one->v4.sin_addr.s_addr);
  if (one->any.sa_family != AF_INET6) return;
  struct in6_addr *six = &one->v6.sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(six)) {
    in_addr_t four;
    memcpy(&four, &six->s6_addr[12], sizeof four);
    four = inside(four);
    memcpy(&six->s6_addr[12], &four, sizeof four);
  } else {
    *six = in6addr_loopback;
    one->v6.sin6_scope_id = 0;
  }
}

static int call(long number, int socket, const struct sockaddr *given, socklen_t length) {
  union address mine;
  if (given == NULL || length > sizeof mine) return (int)syscall(number, socket, given, length);
  memset(&mine, 0, sizeof mine);
  memcpy(&mine, given, length);
  keep_inside(&mine);
  return (int)syscall(number, socket, &mine, length);
}

int bind(int socket, const struct sockaddr *given, socklen_t length) { return call(SYS_bind, socket, given, length); }

int connect(int socket, const struct sockaddr *given, socklen_t length) {
  return call(SYS_connect, socket, given, length);
}

/* A socket that listens without having been bound would get a port on every address. */
int listen(int socket, int backlog) {
  union address bound;
  socklen_t length = sizeof bound;
  memset(&bound, 0, sizeof bound);
  if (getsockname(socket, &bound.any, &length) == 0) {
    int internet = bound.any.sa_family == AF_INET || bound.any.sa_family == AF_INET6;
    in_port_t port = bound.any.sa_family == AF_INET ? bound.v4.sin_port : bound.v6.sin6_port;
    if (internet && port == 0 && bind(socket, &bound.any, length) != 0) return -1;
  }
  return (int)syscall(SYS_listen, socket, backlog);
}
