/* A guest of 64 KiB that goes all the way to user mode and back, for `kvm.py`: a processor that only opens /dev/kvm, or
 * only runs real mode, does not get there. It ends QEMU through the port of isa-debug-exit, with exit code 2 * 42 + 1.
 *
 *   as --64 -o probe.o probe.S && ld -Ttext=0 --oformat=binary -o probe.bin probe.o
 *
 * The image lies at 0xf0000; the processor starts at its last 16 bytes, which kvm.py adds (a jump to its first).
 */
        .code16
        .globl _start
_start: cli
        movw $0xf000, %ax
        movw %ax, %ds
        lgdtl table
        movl %cr0, %eax
        orb $1, %al
        movl %eax, %cr0
        ljmpl $0x08, $0xf0000 + protected

        .code32
protected:
        movw $0x10, %ax
        movw %ax, %ds
        movw %ax, %es
        movw %ax, %ss
        movl $0x7000, %esp
        cld
        movl $0x10000, %edi             /* 0x10000-0x13000 pages, 0x20000 interrupts, 0x21000 task: all zero first */
        xorl %eax, %eax
        movl $0x5000, %ecx
        rep stosl
        movl $0x11007, 0x10000
        movl $0x12007, 0x11000
        movl $0x00087, 0x12000          /* the first 2 MiB, for everybody */
        movl $0x10000, %eax
        movl %eax, %cr3
        movl %cr4, %eax
        orl $0x20, %eax
        movl %eax, %cr4
        movl $0xc0000080, %ecx
        rdmsr
        orl $0x101, %eax                /* long mode, syscall */
        wrmsr
        movl %cr0, %eax
        orl $0x80010000, %eax           /* paging */
        movl %eax, %cr0
        ljmpl $0x18, $0xf0000 + long

        .code64
long:
        movw $0x10, %ax
        movw %ax, %ds
        movw %ax, %es
        movw %ax, %ss
        movl $0x20000 + 6 * 16, %edi    /* invalid instruction */
        movl $0xf0000 + invalid, %eax
        movb $0x8e, %dl
        call gate
        movl $0x20000 + 0x80 * 16, %edi
        movl $0xf0000 + interrupt, %eax
        movb $0xee, %dl                 /* user mode may call it */
        call gate
        lidt 0xf0000 + interrupts
        movq $0x7800, %rax
        movq %rax, 0x21004
        movl $0xf0000 + descriptors, %esi
        movl $0x22000, %edi             /* where loading the task register may mark it */
        movl $descriptors_end - descriptors, %ecx
        rep movsb
        lgdt 0xf0000 + table_in_memory
        movw $0x38, %ax
        ltr %ax
        movl $0xc0000081, %ecx
        xorl %eax, %eax
        movl $0x00200018, %edx
        wrmsr
        movl $0xc0000082, %ecx
        movl $0xf0000 + system_call, %eax
        xorl %edx, %edx
        wrmsr
        xorl %ebx, %ebx
        ud2                             /* bit 3 when the handler came back */
        pushq $0x2b
        pushq $0x7400
        pushq $2
        pushq $0x33
        pushq $0xf0000 + user
        iretq
user:
        int $0x80                       /* bit 5 */
        syscall                         /* bit 1, and out */
        ud2
invalid:
        orb $8, %bl
        addq $2, (%rsp)
        iretq
interrupt:
        orb $32, %bl
        iretq
system_call:
        orb $2, %bl
        movb %bl, %al
        movw $0xf4, %dx
        outb %al, %dx
stop:   hlt
        jmp stop
gate:
        movw %ax, (%rdi)
        movw $0x18, 2(%rdi)
        movb %dl, 5(%rdi)
        shrl $16, %eax
        movw %ax, 6(%rdi)
        ret

        .balign 8
descriptors:                            /* marked as accessed: no processor need write to this read-only memory */
        .quad 0
        .quad 0x00cf9b000000ffff        /* 08 code, 32 bits */
        .quad 0x00cf93000000ffff        /* 10 data */
        .quad 0x00af9b000000ffff        /* 18 code, 64 bits */
        .quad 0x00cf93000000ffff        /* 20 data after syscall */
        .quad 0x00cff3000000ffff        /* 28 data of users */
        .quad 0x00affb000000ffff        /* 30 code of users, 64 bits */
        .quad 0x0000890210000067        /* 38 task at 0x21000 */
        .quad 0
descriptors_end:
table:
        .word descriptors_end - descriptors - 1
        .long 0xf0000 + descriptors
table_in_memory:
        .word descriptors_end - descriptors - 1
        .quad 0x22000
interrupts:
        .word 0xfff
        .quad 0x20000
