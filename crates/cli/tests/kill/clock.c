/* Loaded into a process with LD_PRELOAD: its time of day is off by the milliseconds in the file that
   INTERLOCK_TEST_CLOCK names, as they stand there at the moment. The monotonic clock is left alone. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset_ms(void) {
    const char *path = getenv("INTERLOCK_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    char text[32];
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    return atoll(text);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, clock, at);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    long long offset = offset_ms();
    long long nanos = at->tv_nsec + offset % 1000 * 1000000;
    at->tv_sec += offset / 1000;
    if (nanos < 0) { nanos += 1000000000; at->tv_sec -= 1; }
    if (nanos >= 1000000000) { nanos -= 1000000000; at->tv_sec += 1; }
    at->tv_nsec = nanos;
    return 0;
}

/* PostgreSQL asks in these ways. */
int gettimeofday(struct timeval *at, void *zone) {
    (void)zone;
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
