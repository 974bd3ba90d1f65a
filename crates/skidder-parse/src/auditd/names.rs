//! Names of numbers in audit records: system calls, errors, signals, architectures.
//!
//! The numbers are those of the Linux kernel's headers (for ARM, PowerPC and s390x those that the
//! `libc` crate lists); the names are those that the audit user space gives, as `pread` for
//! `pread64`. A number without a name stays a number.

use std::sync::LazyLock;

/// Names by number, from 0 on; `-` has none.
type Names = &'static str;

/// The name of a number.
fn name(names: Names, number: usize) -> Option<&'static str> {
    names.split_ascii_whitespace().nth(number).filter(|&name| name != "-")
}

/// Names of system calls of one architecture, by number.
struct Syscalls {
    arch: &'static str,
    names: Vec<&'static str>,
}

/// The tables, ready to be looked up; made when the first system call is.
static SYSCALLS: LazyLock<Vec<Syscalls>> = LazyLock::new(|| {
    let tables = [
        ("x86_64", X86_64),
        ("aarch64", AARCH64),
        ("i386", I386),
        ("arm", ARM),
        ("ppc", PPC),
        ("ppc64", PPC),
        ("ppc64le", PPC),
        ("s390x", S390X),
    ];
    let table = |(arch, names): (_, Names)| Syscalls {
        arch,
        names: names.split_ascii_whitespace().collect(),
    };
    tables.map(table).into()
});

/// The name of a system call of an architecture.
pub(super) fn syscall(arch: &[u8], number: usize) -> Option<&'static str> {
    let table = SYSCALLS.iter().find(|table| table.arch.as_bytes() == arch)?;
    table.names.get(number).copied().filter(|&name| name != "-")
}

/// The name of an error number.
pub(super) fn error(number: usize) -> Option<&'static str> {
    name(ERRORS, number)
}

/// The name of a signal.
pub(super) fn signal(number: usize) -> Option<&'static str> {
    name(SIGNALS, number)
}

/// The name of an architecture, by the number that the kernel audits it with.
pub(super) fn arch(number: u32) -> Option<&'static str> {
    ARCHES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

const ARCHES: &[(u32, &str)] = &[
    (0xc000_00b7, "aarch64"),
    (0x4000_0028, "arm"),
    (0x28, "armeb"),
    (0x4000_008c, "c6x"),
    (0x8c, "c6xbe"),
    (0x4000_004c, "cris"),
    (0x5441, "frv"),
    (0x2e, "h8300"),
    (0x4000_0003, "i386"),
    (0xc000_0032, "ia64"),
    (0x4000_0102, "loongarch32"),
    (0xc000_0102, "loongarch64"),
    (0x58, "m32r"),
    (0x4, "m68k"),
    (0x8, "mips"),
    (0x8000_0008, "mips64"),
    (0xa000_0008, "mips64n32"),
    (0x4000_0008, "mipsel"),
    (0xc000_0008, "mipsel64"),
    (0xe000_0008, "mipsel64n32"),
    (0x4000_0071, "nios2"),
    (0xf, "parisc"),
    (0x8000_000f, "parisc64"),
    (0x14, "ppc"),
    (0x8000_0015, "ppc64"),
    (0xc000_0015, "ppc64le"),
    (0x16, "s390"),
    (0x8000_0016, "s390x"),
    (0x2a, "sh"),
    (0x8000_002a, "sh64"),
    (0x4000_002a, "shel"),
    (0xc000_002a, "shel64"),
    (0x2, "sparc"),
    (0x8000_002b, "sparc64"),
    (0xc000_003e, "x86_64"),
];

/// Errors of all architectures but a few old ones.
const ERRORS: Names = "\
    - EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT \
    ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG \
    ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY \
    ELOOP - ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT EL3RST ELNRNG EUNATCH ENOCSI EL2HLT EBADE EBADR \
    EXFULL ENOANO EBADRQC EBADSLT - EBFONT ENOSTR ENODATA ETIME ENOSR ENONET ENOPKG EREMOTE \
    ENOLINK EADV ESRMNT ECOMM EPROTO EMULTIHOP EDOTDOT EBADMSG EOVERFLOW ENOTUNIQ EBADFD EREMCHG \
    ELIBACC ELIBBAD ELIBSCN ELIBMAX ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS ENOTSOCK \
    EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP \
    EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET \
    ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT \
    ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL \
    EISNAM EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE ECANCELED ENOKEY EKEYEXPIRED EKEYREVOKED \
    EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL EHWPOISON";

/// Signals.
const SIGNALS: Names = "\
    - SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2 \
    SIGPIPE SIGALRM SIGTERM SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG \
    SIGXCPU SIGXFSZ SIGVTALRM SIGPROF SIGWINCH SIGIO SIGPWR SIGSYS";

/// System calls of x86_64.
const X86_64: Names = "\
    read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction \
    rt_sigprocmask rt_sigreturn ioctl pread pwrite readv writev access pipe select sched_yield \
    mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm \
    setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg recvmsg shutdown \
    bind listen getsockname getpeername socketpair setsockopt getsockopt clone fork vfork execve \
    exit wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock \
    fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat \
    link unlink symlink readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit \
    getrusage sysinfo times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid \
    getppid getpgrp setsid setreuid setregid getgroups setgroups setresuid getresuid setresgid \
    getresgid getpgid setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait \
    rt_sigqueueinfo rt_sigsuspend sigaltstack utime mknod uselib personality ustat statfs \
    fstatfs sysfs getpriority setpriority sched_setparam sched_getparam sched_setscheduler \
    sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock \
    munlock mlockall munlockall vhangup modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex \
    setrlimit chroot sync acct settimeofday mount umount2 swapon swapoff reboot sethostname \
    setdomainname iopl ioperm create_module init_module delete_module get_kernel_syms \
    query_module quotactl nfsservctl getpmsg putpmsg afs_syscall tuxcall security gettid \
    readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr \
    flistxattr removexattr lremovexattr fremovexattr tkill time futex sched_setaffinity \
    sched_getaffinity set_thread_area io_setup io_destroy io_getevents io_submit io_cancel \
    get_thread_area lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old remap_file_pages \
    getdents64 set_tid_address restart_syscall semtimedop fadvise64 timer_create timer_settime \
    timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime clock_getres \
    clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes vserver mbind set_mempolicy \
    get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr \
    kexec_load waitid add_key request_key keyctl ioprio_set ioprio_get inotify_init \
    inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat \
    newfstatat unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll \
    unshare set_robust_list get_robust_list splice tee sync_file_range vmsplice move_pages \
    utimensat epoll_pwait signalfd timerfd_create eventfd fallocate timerfd_settime \
    timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv \
    pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64 \
    name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg setns getcpu \
    process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 \
    seccomp getrandom memfd_create kexec_file_load bpf execveat userfaultfd membarrier mlock2 \
    copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq \
    - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - \
    - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - \
    pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount \
    fsopen fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 \
    process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset \
    landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv \
    set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait \
    futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal";

/// System calls of i386.
const I386: Names = "\
    restart_syscall exit fork read write open close waitpid creat link unlink execve chdir time \
    mknod chmod lchown break oldstat lseek getpid mount umount setuid getuid stime ptrace alarm \
    oldfstat pause utime stty gtty access nice ftime sync kill rename mkdir rmdir dup pipe times \
    prof brk setgid getgid signal geteuid getegid acct umount2 lock ioctl fcntl mpx setpgid \
    ulimit oldolduname umask chroot ustat dup2 getppid getpgrp setsid sigaction sgetmask \
    ssetmask setreuid setregid sigsuspend sigpending sethostname setrlimit getrlimit getrusage \
    gettimeofday settimeofday getgroups setgroups select symlink oldlstat readlink uselib swapon \
    reboot readdir mmap munmap truncate ftruncate fchmod fchown getpriority setpriority profil \
    statfs fstatfs ioperm socketcall syslog setitimer getitimer stat lstat fstat olduname iopl \
    vhangup idle vm86old wait4 swapoff sysinfo ipc fsync sigreturn clone setdomainname uname \
    modify_ldt adjtimex mprotect sigprocmask create_module init_module delete_module \
    get_kernel_syms quotactl getpgid fchdir bdflush sysfs personality afs_syscall setfsuid \
    setfsgid _llseek getdents _newselect flock msync readv writev getsid fdatasync _sysctl mlock \
    munlock mlockall munlockall sched_setparam sched_getparam sched_setscheduler \
    sched_getscheduler sched_yield sched_get_priority_max sched_get_priority_min \
    sched_rr_get_interval nanosleep mremap setresuid getresuid vm86 query_module poll nfsservctl \
    setresgid getresgid prctl rt_sigreturn rt_sigaction rt_sigprocmask rt_sigpending \
    rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend pread64 pwrite64 chown getcwd capget capset \
    sigaltstack sendfile getpmsg putpmsg vfork ugetrlimit mmap2 truncate64 ftruncate64 stat64 \
    lstat64 fstat64 lchown32 getuid32 getgid32 geteuid32 getegid32 setreuid32 setregid32 \
    getgroups32 setgroups32 fchown32 setresuid32 getresuid32 setresgid32 getresgid32 chown32 \
    setuid32 setgid32 setfsuid32 setfsgid32 pivot_root mincore madvise1 getdents64 fcntl64 - - \
    gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr \
    llistxattr flistxattr removexattr lremovexattr fremovexattr tkill sendfile64 futex \
    sched_setaffinity sched_getaffinity set_thread_area get_thread_area io_setup io_destroy \
    io_getevents io_submit io_cancel fadvise64 - exit_group lookup_dcookie epoll_create \
    epoll_ctl epoll_wait remap_file_pages set_tid_address timer_create timer_settime \
    timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime clock_getres \
    clock_nanosleep statfs64 fstatfs64 tgkill utimes fadvise64_64 vserver mbind get_mempolicy \
    set_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr \
    sys_kexec_load waitid - add_key request_key keyctl ioprio_set ioprio_get inotify_init \
    inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat \
    fstatat64 unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll \
    unshare set_robust_list get_robust_list splice sync_file_range tee vmsplice move_pages \
    getcpu epoll_pwait utimensat signalfd timerfd_create eventfd fallocate timerfd_settime \
    timerfd_gettime signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev \
    rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64 \
    name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg setns process_vm_readv \
    process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom \
    memfd_create bpf execveat socket socketpair bind connect listen accept4 getsockopt \
    setsockopt getsockname getpeername sendto sendmsg recvfrom recvmsg shutdown userfaultfd \
    membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx \
    arch_prctl io_pgetevents rseq - - - - - - semget semctl shmget shmctl shmat shmdt msgget \
    msgsnd msgrcv msgctl clock_gettime64 clock_settime64 clock_adjtime64 clock_getres_time64 \
    clock_nanosleep_time64 timer_gettime64 timer_settime64 timerfd_gettime64 timerfd_settime64 \
    utimensat_time64 pselect6_time64 ppoll_time64 - io_pgetevents_time64 recvmmsg_time64 \
    mq_timedsend_time64 mq_timedreceive_time64 semtimedop_time64 rt_sigtimedwait_time64 \
    futex_time64 sched_rr_get_interval64 pidfd_send_signal io_uring_setup io_uring_enter \
    io_uring_register open_tree move_mount fsopen fsconfig fsmount fspick pidfd_open clone3 \
    close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr \
    quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret \
    process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack \
    futex_wake futex_wait futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr \
    lsm_list_modules mseal";

/// System calls of aarch64.
const AARCH64: Names = "\
    io_setup io_destroy io_submit io_cancel io_getevents setxattr lsetxattr fsetxattr getxattr \
    lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr \
    getcwd lookup_dcookie eventfd2 epoll_create1 epoll_ctl epoll_pwait dup dup3 fcntl \
    inotify_init1 inotify_add_watch inotify_rm_watch ioctl ioprio_set ioprio_get flock mknodat \
    mkdirat unlinkat symlinkat linkat renameat umount2 mount pivot_root nfsservctl statfs \
    fstatfs truncate ftruncate fallocate faccessat chdir fchdir chroot fchmod fchmodat fchownat \
    fchown openat close vhangup pipe2 quotactl getdents lseek read write readv writev pread \
    pwrite preadv pwritev sendfile pselect6 ppoll signalfd4 vmsplice splice tee readlinkat \
    newfstatat newfstat sync fsync fdatasync sync_file_range timerfd_create timerfd_settime \
    timerfd_gettime utimensat acct capget capset personality exit exit_group waitid \
    set_tid_address unshare futex set_robust_list get_robust_list nanosleep getitimer setitimer \
    kexec_load init_module delete_module timer_create timer_gettime timer_getoverrun \
    timer_settime timer_delete clock_settime clock_gettime clock_getres clock_nanosleep syslog \
    ptrace sched_setparam sched_setscheduler sched_getscheduler sched_getparam sched_setaffinity \
    sched_getaffinity sched_yield sched_get_priority_max sched_get_priority_min \
    sched_rr_get_interval restart_syscall kill tkill tgkill sigaltstack rt_sigsuspend \
    rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigreturn \
    setpriority getpriority reboot setregid setgid setreuid setuid setresuid getresuid setresgid \
    getresgid setfsuid setfsgid times setpgid getpgid getsid setsid getgroups setgroups uname \
    sethostname setdomainname getrlimit setrlimit getrusage umask prctl getcpu gettimeofday \
    settimeofday adjtimex getpid getppid getuid geteuid getgid getegid gettid sysinfo mq_open \
    mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr msgget msgctl msgrcv msgsnd \
    semget semctl semtimedop semop shmget shmctl shmat shmdt socket socketpair bind listen \
    accept connect getsockname getpeername sendto recvfrom setsockopt getsockopt shutdown \
    sendmsg recvmsg readahead brk munmap mremap add_key request_key keyctl clone execve mmap \
    fadvise64 swapon swapoff mprotect msync mlock munlock mlockall munlockall mincore madvise \
    remap_file_pages mbind get_mempolicy set_mempolicy migrate_pages move_pages \
    rt_tgsigqueueinfo perf_event_open accept4 recvmmsg - - - - - - - - - - - - - - - - wait4 \
    prlimit64 fanotify_init fanotify_mark name_to_handle_at open_by_handle_at clock_adjtime \
    syncfs setns sendmmsg process_vm_readv process_vm_writev kcmp finit_module sched_setattr \
    sched_getattr renameat2 seccomp getrandom memfd_create bpf execveat userfaultfd membarrier \
    mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx \
    io_pgetevents rseq kexec_file_load - - - - - - - - - - - - - - - - - - - - - - - - - - - - - \
    - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - \
    - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - \
    - - - - - - - - pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree \
    move_mount fsopen fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd \
    faccessat2 process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset \
    landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv \
    set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait \
    futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal";

/// System calls of arm.
const ARM: Names = "\
    restart_syscall exit fork read write open close - creat link unlink execve chdir - mknod \
    chmod lchown - - lseek getpid mount - setuid getuid - ptrace - - pause - - - access nice - \
    sync kill rename mkdir rmdir dup pipe times - brk setgid getgid - geteuid getegid acct \
    umount2 - ioctl fcntl - setpgid - - umask chroot ustat dup2 getppid getpgrp setsid sigaction \
    - - setreuid setregid sigsuspend sigpending sethostname setrlimit - getrusage gettimeofday \
    settimeofday getgroups setgroups - symlink - readlink uselib swapon reboot - - munmap \
    truncate ftruncate fchmod fchown getpriority setpriority - statfs fstatfs - - syslog \
    setitimer getitimer stat lstat fstat - - vhangup - - wait4 swapoff sysinfo - fsync sigreturn \
    clone setdomainname uname - adjtimex mprotect sigprocmask - init_module delete_module - \
    quotactl getpgid fchdir bdflush sysfs personality - setfsuid setfsgid llseek getdents \
    newselect flock msync readv writev getsid fdatasync sysctl mlock munlock mlockall munlockall \
    sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_yield \
    sched_get_priority_max sched_get_priority_min sched_rr_get_interval nanosleep mremap \
    setresuid getresuid - - poll nfsservctl setresgid getresgid prctl rt_sigreturn rt_sigaction \
    rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend pread64 pwrite64 \
    chown getcwd capget capset sigaltstack sendfile - - vfork ugetrlimit mmap2 truncate64 \
    ftruncate64 stat64 lstat64 fstat64 lchown32 getuid32 getgid32 geteuid32 getegid32 setreuid32 \
    setregid32 getgroups32 setgroups32 fchown32 setresuid32 getresuid32 setresgid32 getresgid32 \
    chown32 setuid32 setgid32 setfsuid32 setfsgid32 getdents64 pivot_root mincore madvise \
    fcntl64 - - gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr \
    listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill sendfile64 futex \
    sched_setaffinity sched_getaffinity io_setup io_destroy io_getevents io_submit io_cancel \
    exit_group lookup_dcookie epoll_create epoll_ctl epoll_wait remap_file_pages - - \
    set_tid_address timer_create timer_settime timer_gettime timer_getoverrun timer_delete \
    clock_settime clock_gettime clock_getres clock_nanosleep statfs64 fstatfs64 tgkill utimes \
    fadvise64_64 pciconfig_iobase pciconfig_read pciconfig_write mq_open mq_unlink mq_timedsend \
    mq_timedreceive mq_notify mq_getsetattr waitid socket bind connect listen accept getsockname \
    getpeername socketpair send sendto recv recvfrom shutdown setsockopt getsockopt sendmsg \
    recvmsg semop semget semctl msgsnd msgrcv msgget msgctl shmat shmdt shmget shmctl add_key \
    request_key keyctl semtimedop vserver ioprio_set ioprio_get inotify_init inotify_add_watch \
    inotify_rm_watch mbind get_mempolicy set_mempolicy openat mkdirat mknodat fchownat futimesat \
    fstatat64 unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll \
    unshare set_robust_list get_robust_list splice sync_file_range tee vmsplice move_pages \
    getcpu epoll_pwait kexec_load utimensat signalfd timerfd_create eventfd fallocate \
    timerfd_settime timerfd_gettime signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 \
    preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg accept4 fanotify_init \
    fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg \
    setns process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr \
    renameat2 seccomp getrandom memfd_create bpf execveat userfaultfd membarrier mlock2 \
    copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx rseq - - \
    kexec_file_load - clock_gettime64 clock_settime64 clock_adjtime64 clock_getres_time64 \
    clock_nanosleep_time64 timer_gettime64 timer_settime64 timerfd_gettime64 timerfd_settime64 \
    utimensat_time64 pselect6_time64 ppoll_time64 - io_pgetevents_time64 recvmmsg_time64 \
    mq_timedsend_time64 mq_timedreceive_time64 semtimedop_time64 rt_sigtimedwait_time64 \
    futex_time64 sched_rr_get_interval64 pidfd_send_signal io_uring_setup io_uring_enter \
    io_uring_register open_tree move_mount fsopen fsconfig fsmount fspick pidfd_open clone3 \
    close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr \
    quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret \
    process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack \
    futex_wake futex_wait futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr \
    lsm_list_modules mseal";

/// System calls of ppc.
const PPC: Names = "\
    restart_syscall exit fork read write open close waitpid creat link unlink execve chdir time \
    mknod chmod lchown break oldstat lseek getpid mount umount setuid getuid stime ptrace alarm \
    oldfstat pause utime stty gtty access nice ftime sync kill rename mkdir rmdir dup pipe times \
    prof brk setgid getgid signal geteuid getegid acct umount2 lock ioctl fcntl mpx setpgid \
    ulimit oldolduname umask chroot ustat dup2 getppid getpgrp setsid sigaction sgetmask \
    ssetmask setreuid setregid sigsuspend sigpending sethostname setrlimit getrlimit getrusage \
    gettimeofday settimeofday getgroups setgroups select symlink oldlstat readlink uselib swapon \
    reboot readdir mmap munmap truncate ftruncate fchmod fchown getpriority setpriority profil \
    statfs fstatfs ioperm socketcall syslog setitimer getitimer stat lstat fstat olduname iopl \
    vhangup idle vm86 wait4 swapoff sysinfo ipc fsync sigreturn clone setdomainname uname \
    modify_ldt adjtimex mprotect sigprocmask - init_module delete_module - quotactl getpgid \
    fchdir bdflush sysfs personality afs_syscall setfsuid setfsgid _llseek getdents _newselect \
    flock msync readv writev getsid fdatasync _sysctl mlock munlock mlockall munlockall \
    sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_yield \
    sched_get_priority_max sched_get_priority_min sched_rr_get_interval nanosleep mremap \
    setresuid getresuid - poll nfsservctl setresgid getresgid prctl rt_sigreturn rt_sigaction \
    rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend pread pwrite \
    chown getcwd capget capset sigaltstack sendfile getpmsg putpmsg vfork ugetrlimit readahead \
    mmap2 truncate64 ftruncate64 stat64 lstat64 fstat64 pciconfig_read pciconfig_write \
    pciconfig_iobase multiplexer getdents64 pivot_root fcntl64 madvise mincore gettid tkill \
    setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr \
    removexattr lremovexattr fremovexattr futex sched_setaffinity sched_getaffinity - tuxcall \
    sendfile64 io_setup io_destroy io_getevents io_submit io_cancel set_tid_address fadvise64 \
    exit_group lookup_dcookie epoll_create epoll_ctl epoll_wait remap_file_pages timer_create \
    timer_settime timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime \
    clock_getres clock_nanosleep swapcontext tgkill utimes statfs64 fstatfs64 fadvise64_64 rtas \
    sys_debug_setcontext - migrate_pages mbind get_mempolicy set_mempolicy mq_open mq_unlink \
    mq_timedsend mq_timedreceive mq_notify mq_getsetattr kexec_load add_key request_key keyctl \
    waitid ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch spu_run \
    spu_create pselect6 ppoll unshare splice tee vmsplice openat mkdirat mknodat fchownat \
    futimesat fstatat64 unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat \
    get_robust_list set_robust_list move_pages getcpu epoll_pwait utimensat signalfd timerfd \
    eventfd sync_file_range2 fallocate subpage_prot timerfd_settime timerfd_gettime signalfd4 \
    eventfd2 epoll_create1 dup3 pipe2 inotify_init1 perf_counter_open preadv pwritev \
    rt_tgsigqueueinfo fanotify_init fanotify_mark prlimit64 socket bind connect listen accept \
    getsockname getpeername socketpair send sendto recv recvfrom shutdown setsockopt getsockopt \
    sendmsg recvmsg recvmmsg accept4 name_to_handle_at open_by_handle_at clock_adjtime syncfs \
    sendmmsg setns process_vm_readv process_vm_writev finit_module kcmp sched_setattr \
    sched_getattr renameat2 seccomp getrandom memfd_create bpf execveat switch_endian \
    userfaultfd membarrier - - - - - - - - - - - - mlock2 copy_file_range preadv2 pwritev2 \
    kexec_file_load statx - - - rseq - - - - - - - - - - - - - - - clock_gettime64 \
    clock_settime64 clock_adjtime64 clock_getres_time64 clock_nanosleep_time64 timer_gettime64 \
    timer_settime64 timerfd_gettime64 timerfd_settime64 utimensat_time64 pselect6_time64 \
    ppoll_time64 - io_pgetevents_time64 recvmmsg_time64 mq_timedsend_time64 \
    mq_timedreceive_time64 semtimedop_time64 rt_sigtimedwait_time64 futex_time64 \
    sched_rr_get_interval_time64 pidfd_send_signal io_uring_setup io_uring_enter \
    io_uring_register open_tree move_mount fsopen fsconfig fsmount fspick pidfd_open clone3 \
    close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr \
    quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret \
    process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack \
    futex_wake futex_wait futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr \
    lsm_list_modules mseal";

/// System calls of s390x.
const S390X: Names = "\
    - exit fork read write open close restart_syscall creat link unlink execve chdir - mknod \
    chmod - - - lseek getpid mount umount - - - ptrace alarm - pause utime - - access nice - \
    sync kill rename mkdir rmdir dup pipe times - brk - - signal - - acct umount2 - ioctl fcntl \
    - setpgid - - umask chroot ustat dup2 getppid getpgrp setsid sigaction - - - - sigsuspend \
    sigpending sethostname setrlimit - getrusage gettimeofday settimeofday - - - symlink - \
    readlink uselib swapon reboot readdir mmap munmap truncate ftruncate fchmod - getpriority \
    setpriority - statfs fstatfs - socketcall syslog setitimer getitimer stat lstat fstat - \
    lookup_dcookie vhangup idle - wait4 swapoff sysinfo ipc fsync sigreturn clone setdomainname \
    uname - adjtimex mprotect sigprocmask - init_module delete_module - quotactl getpgid fchdir \
    bdflush sysfs personality afs_syscall - - - getdents select flock msync readv writev getsid \
    fdatasync _sysctl mlock munlock mlockall munlockall sched_setparam sched_getparam \
    sched_setscheduler sched_getscheduler sched_yield sched_get_priority_max \
    sched_get_priority_min sched_rr_get_interval nanosleep mremap - - - - poll nfsservctl - - \
    prctl rt_sigreturn rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo \
    rt_sigsuspend pread pwrite - getcwd capget capset sigaltstack sendfile getpmsg putpmsg vfork \
    getrlimit - - - - - - lchown getuid getgid geteuid getegid setreuid setregid getgroups \
    setgroups fchown setresuid getresuid setresgid getresgid chown setuid setgid setfsuid \
    setfsgid pivot_root mincore madvise getdents64 - readahead - setxattr lsetxattr fsetxattr \
    getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr \
    fremovexattr gettid tkill futex sched_setaffinity sched_getaffinity tgkill - io_setup \
    io_destroy io_getevents io_submit io_cancel exit_group epoll_create epoll_ctl epoll_wait \
    set_tid_address fadvise64 timer_create timer_settime timer_gettime timer_getoverrun \
    timer_delete clock_settime clock_gettime clock_getres clock_nanosleep - - statfs64 fstatfs64 \
    remap_file_pages mbind get_mempolicy set_mempolicy mq_open mq_unlink mq_timedsend \
    mq_timedreceive mq_notify mq_getsetattr kexec_load add_key request_key keyctl waitid \
    ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat \
    mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat \
    fchmodat faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice \
    sync_file_range tee vmsplice move_pages getcpu epoll_pwait utimes fallocate utimensat \
    signalfd timerfd eventfd timerfd_create timerfd_settime timerfd_gettime signalfd4 eventfd2 \
    inotify_init1 pipe2 dup3 epoll_create1 preadv pwritev rt_tgsigqueueinfo perf_event_open \
    fanotify_init fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime \
    syncfs setns process_vm_readv process_vm_writev s390_runtime_instr kcmp finit_module \
    sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create bpf s390_pci_mmio_write \
    s390_pci_mmio_read execveat userfaultfd membarrier recvmmsg sendmmsg socket socketpair bind \
    connect listen accept4 getsockopt setsockopt getsockname getpeername sendto sendmsg recvfrom \
    recvmsg shutdown mlock2 copy_file_range preadv2 pwritev2 - statx - - - rseq - - - - - - - - \
    - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - pidfd_send_signal \
    io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig fsmount \
    fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise \
    epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule \
    landlock_restrict_self memfd_secret process_mrelease futex_waitv set_mempolicy_home_node \
    cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount \
    lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal";
