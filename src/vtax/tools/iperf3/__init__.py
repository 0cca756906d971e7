"""iperf3: TCP and UDP throughput."""
