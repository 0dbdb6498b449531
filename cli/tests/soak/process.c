/*
 * This library is preloaded into the command (LD_PRELOAD). It replaces the process's clocks, waits and random numbers, and can
 * kill the process before an operation that other processes can see. See machine.rs.
 *
 * The process connects to SOAK_CONTROL. When it can only wait, it sends a struct idle. The test sends a struct given: the time,
 * which may end a wait, and when the process is to be killed.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct given {
  int64_t number;
  int64_t monotonic_ns;
  int64_t unix_ns;
  /* The number of operations before the process is killed; -1 leaves that number unchanged. */
  int64_t operations;
};

struct idle {
  /* The number of the newest struct given. */
  int64_t number;
  /* The end of the process's wait, on the monotonic clock. */
  int64_t deadline_ns;
};

static int control = -1;
static int64_t number;
static _Atomic int64_t monotonic_ns, unix_ns;
static _Atomic int64_t left = INT64_MAX;
static _Atomic uint64_t chance;

/* Receives everything that the test has sent. */
static void receive(int flags) {
  struct given given;
  for (;;) {
    ssize_t size = syscall(SYS_recvfrom, control, &given, sizeof given, flags, NULL, NULL);
    if (size < 0 && errno == EINTR) continue;
    /* The test has ended, so the process exits. */
    if (size == 0) _exit(99);
    if (size != sizeof given) return;
    number = given.number;
    monotonic_ns = given.monotonic_ns;
    unix_ns = given.unix_ns;
    if (given.operations >= 0) left = given.operations;
    flags |= MSG_DONTWAIT;
  }
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("SOAK_CONTROL"), *seed = getenv("SOAK_CHANCE");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (path == NULL || seed == NULL || strlen(path) >= sizeof address.sun_path) _exit(98);
  strcpy(address.sun_path, path);
  chance = strtoull(seed, NULL, 10);
  control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(control, (struct sockaddr *)&address, sizeof address) != 0) _exit(97);
  receive(0);
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/* Counts an operation. Returns whether the process dies instead of it. */
static int is_last(void) { return atomic_fetch_sub(&left, 1) == 0; }

static void operation(void) {
  if (is_last()) die();
}

static uint64_t draw(void) {
  uint64_t mixed = atomic_fetch_add(&chance, 0x9e3779b97f4a7c15u) + 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

/* The clocks. */

int clock_gettime(clockid_t clock, struct timespec *time) {
  int64_t ns;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      ns = unix_ns;
      break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      ns = monotonic_ns;
      break;
    default:
      return (int)syscall(SYS_clock_gettime, clock, time);
  }
  time->tv_sec = ns / 1000000000;
  time->tv_nsec = ns % 1000000000;
  return 0;
}

/* The only wait of the command's main thread. */
int epoll_wait(int epoll, struct epoll_event *events, int size, int timeout_ms) {
  int64_t deadline_ns = timeout_ms < 0 ? INT64_MAX : monotonic_ns + timeout_ms * INT64_C(1000000);
  for (;;) {
    int found = (int)syscall(SYS_epoll_pwait, epoll, events, size, 0, NULL, 8);
    if (found != 0 || monotonic_ns >= deadline_ns) return found;
    struct idle idle = {number, deadline_ns};
    syscall(SYS_sendto, control, &idle, sizeof idle, MSG_NOSIGNAL, NULL, 0);
    struct pollfd either[2] = {{.fd = epoll, .events = POLLIN}, {.fd = control, .events = POLLIN}};
    if (poll(either, 2, -1) < 0) return -1;
    if (either[1].revents != 0) receive(MSG_DONTWAIT);
  }
}

/* Random numbers. */

ssize_t getrandom(void *buffer, size_t size, unsigned flags) {
  (void)flags;
  for (size_t place = 0; place < size; place++) ((unsigned char *)buffer)[place] = (unsigned char)draw();
  return (ssize_t)size;
}

/* Operations that other processes can see. */

ssize_t write(int file, const void *bytes, size_t size) {
  if (is_last()) {
    struct stat found;
    /* A kill can leave any part of a write in a file. */
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode)) syscall(SYS_write, file, bytes, draw() % (size + 1));
    die();
  }
  return syscall(SYS_write, file, bytes, size);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  operation();
  return syscall(SYS_writev, file, parts, count);
}

ssize_t send(int socket, const void *bytes, size_t size, int flags) {
  operation();
  return syscall(SYS_sendto, socket, bytes, size, flags, NULL, 0);
}

ssize_t recv(int socket, void *bytes, size_t size, int flags) {
  operation();
  return syscall(SYS_recvfrom, socket, bytes, size, flags, NULL, NULL);
}

int fsync(int file) {
  operation();
  return (int)syscall(SYS_fsync, file);
}

int open64(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | __O_TMPFILE)) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  if (flags & O_ACCMODE) operation();
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int rename(const char *from, const char *to) {
  operation();
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path) {
  operation();
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int mkdir(const char *path, mode_t mode) {
  operation();
  return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rmdir(const char *path) {
  operation();
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}
