/* Included by misbehaving.c: what it does on Linux and macOS. */
#include <dlfcn.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define TO_READ "re"
#define TO_APPEND (O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC)

static bool path_of_library(void *of, char *path, size_t size)
{
    Dl_info info;
    if (!dladdr(of, &info))
        return false;
    snprintf(path, size, "%s", info.dli_fname);
    return true;
}

static void rest(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
    while (nanosleep(&left, &left)) /* also after a signal */
        ;
}

static void kill_this_process(void)
{
    kill(getpid(), SIGKILL);
}

static void block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
}

#define MOST_DESCRIPTORS 256

static bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

/* Into all descriptors but those of the standard streams: as an FMU does that keeps a number which it has closed. */
static void write_everywhere(const char *content, size_t length)
{
    for (int k = 3; k < MOST_DESCRIPTORS; k++)
        if (write(k, content, length) < 0)
            continue;
}

static void replace_everywhere(void)
{
    int file = open("/dev/null", O_WRONLY);
    for (int k = 3; k < MOST_DESCRIPTORS; k++)
        if (k != file && is_open(k))
            dup2(file, k);
}

static void close_everywhere(void)
{
    for (int k = 3; k < MOST_DESCRIPTORS; k++)
        close(k);
}

/* A process that stays: a child, or a daemon with a session of its own. */
static void start_process(const char *path, bool is_daemon)
{
    int pipe_of[2];
    if (pipe(pipe_of))
        abort();
    pid_t child = fork();
    if (child == 0) {
        if (is_daemon && (setsid() < 0 || fork() != 0))
            _exit(0);
        char line[32];
        int n = snprintf(line, sizeof line, "%d\n", (int)getpid());
        int file = open(path, TO_APPEND, 0600);
        if (write(file, line, (size_t)n) < 0 || write(pipe_of[1], line, 1) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    if (read(pipe_of[0], &byte, 1) < 0)
        abort();
    close(pipe_of[0]);
    close(pipe_of[1]);
}
