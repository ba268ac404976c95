/* Included by misbehaving.c: what it does on Windows. */
#define WIN32_LEAN_AND_MEAN
#define NOGDI /* ERROR */
#include <windows.h>
#include <direct.h>
#include <io.h>
#include <process.h>

#define EXPORTED __declspec(dllexport)
#define TO_READ "r"
#define TO_APPEND (O_WRONLY | O_CREAT | O_APPEND | O_BINARY | O_NOINHERIT)
#define MOST_DESCRIPTORS 256

static bool path_of_library(void *of, char *path, size_t size)
{
    HMODULE library;
    if (!GetModuleHandleExA(
            GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, of, &library))
        return false;
    DWORD n = GetModuleFileNameA(library, path, (DWORD)size);
    for (char *c = path; *c; c++)
        if (*c == '\\')
            *c = '/';
    return n > 0 && n < size;
}

static void rest(double seconds)
{
    Sleep((DWORD)(1e3 * seconds));
}

static void kill_this_process(void)
{
    TerminateProcess(GetCurrentProcess(), 9);
}

/* Ctrl-C and Ctrl-Break are the only signals from outside. */
static BOOL WINAPI take(DWORD event)
{
    (void)event;
    return TRUE;
}

static void block_signals(void)
{
    SetConsoleCtrlHandler(take, TRUE);
}

static void nothing(const wchar_t *a, const wchar_t *b, const wchar_t *c, unsigned d, uintptr_t e)
{
    (void)a, (void)b, (void)c, (void)d, (void)e; /* without it, a descriptor that is not open ends the process */
}

/* Into all descriptors but those of the standard streams: as an FMU does that keeps a number which it has closed. */
static void write_everywhere(const char *content, size_t length)
{
    _set_invalid_parameter_handler(nothing);
    for (int k = 3; k < MOST_DESCRIPTORS; k++)
        if (write(k, content, (unsigned)length) < 0)
            continue;
}

static void replace_everywhere(void)
{
    _set_invalid_parameter_handler(nothing);
    int file = open("NUL", O_WRONLY);
    for (int k = 3; k < MOST_DESCRIPTORS; k++)
        if (k != file && _get_osfhandle(k) != -1)
            dup2(file, k);
}

static void close_everywhere(void)
{
    _set_invalid_parameter_handler(nothing);
    for (int k = 3; k < MOST_DESCRIPTORS; k++)
        close(k);
}

/* A process that stays, and that leaves the job of this one if it may. */
static void start_process(const char *path, bool is_daemon)
{
    char program[MAX_PATH], command[2 * MAX_PATH];
    GetModuleFileNameA(NULL, program, sizeof program);
    snprintf(command, sizeof command, "\"%s\" -c \"import time; time.sleep(3600)\"", program);
    STARTUPINFOA start = {.cb = sizeof start};
    PROCESS_INFORMATION made;
    DWORD flags = is_daemon ? DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP | CREATE_BREAKAWAY_FROM_JOB : 0;
    if (!CreateProcessA(NULL, command, NULL, NULL, FALSE, flags, NULL, NULL, &start, &made) &&
        !CreateProcessA(NULL, command, NULL, NULL, FALSE, flags & ~CREATE_BREAKAWAY_FROM_JOB, NULL, NULL, &start, &made))
        abort();
    char line[32];
    int n = snprintf(line, sizeof line, "%lu\n", made.dwProcessId);
    int file = open(path, TO_APPEND, 0600);
    if (write(file, line, (unsigned)n) < 0)
        abort();
    close(file);
    CloseHandle(made.hThread);
    CloseHandle(made.hProcess);
}
