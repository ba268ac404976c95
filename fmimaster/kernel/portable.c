/* What differs between systems: see portable.h. */

#if defined(__linux__)
#define _GNU_SOURCE /* sched_getcpu, cpu_set_t and syscall */
#endif

#include "portable.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <emmintrin.h>
#endif

enum { SECOND = 1000000000, MICROSECOND = 1000 }; /* [ns] */

#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <malloc.h>
#include <process.h>
#include <string.h>

static wchar_t *wide(const char *text, wchar_t *room, int n)
{
    return MultiByteToWideChar(CP_UTF8, 0, text, -1, room, n) ? room : 0;
}

enum { LONGEST_PATH = 4096 };

void *fm_open_file(const char *path)
{
    wchar_t room[LONGEST_PATH];
    return wide(path, room, LONGEST_PATH) ? _wfopen(room, L"rb") : 0;
}

void *fm_library_open(const char *path)
{
    wchar_t room[LONGEST_PATH];
    if (!wide(path, room, LONGEST_PATH))
        return 0;
    for (wchar_t *c = room; *c; c++)
        *c = *c == L'/' ? L'\\' : *c;
    return (void *)LoadLibraryExW(room, 0, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
}

void *fm_library_find(void *library, const char *name)
{
    return (void *)GetProcAddress(library, name);
}

void fm_library_close(void *library)
{
    FreeLibrary(library);
}

const char *fm_library_error(void)
{
    static char text[40];
    snprintf(text, sizeof text, "error %lu of Windows", (unsigned long)GetLastError());
    return text;
}

int64_t fm_nanoseconds(void)
{
    LARGE_INTEGER count, each_second;
    QueryPerformanceFrequency(&each_second);
    QueryPerformanceCounter(&count);
    int64_t whole = count.QuadPart / each_second.QuadPart, rest = count.QuadPart % each_second.QuadPart;
    return whole * SECOND + rest * SECOND / each_second.QuadPart;
}

/* Other timers of Windows end with the next tick of the system, which comes each 15.6 ms. */
void fm_sleep_until(int64_t nanoseconds)
{
    LARGE_INTEGER due = {.QuadPart = (fm_nanoseconds() - nanoseconds) / 100}; /* negative: from now on, in 100 ns */
    HANDLE timer = CreateWaitableTimerExW(0, 0, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);
    if (!timer) /* before Windows 10 1803 */
        timer = CreateWaitableTimerExW(0, 0, 0, TIMER_ALL_ACCESS);
    if (due.QuadPart < 0 && timer && SetWaitableTimer(timer, &due, 0, 0, 0, 0))
        WaitForSingleObject(timer, INFINITE);
    if (timer)
        CloseHandle(timer);
}

void *fm_allocate_aligned(size_t alignment, size_t size)
{
    return _aligned_malloc(size, alignment);
}

void fm_free_aligned(void *memory)
{
    _aligned_free(memory);
}

int fm_thread_start(fm_thread *thread, FM_THREAD_RESULT (*work)(void *), void *argument)
{
    *thread = _beginthreadex(0, 0, work, argument, 0, 0);
    return *thread != 0;
}

void fm_thread_join(fm_thread thread)
{
    WaitForSingleObject((HANDLE)thread, INFINITE);
    CloseHandle((HANDLE)thread);
}

/* SRWLOCK and CONDITION_VARIABLE are a pointer each, which is null at first. Nothing belongs to them. */

void fm_mutex_new(fm_mutex *mutex)
{
    InitializeSRWLock((SRWLOCK *)mutex);
}

void fm_mutex_free(fm_mutex *mutex)
{
    (void)mutex;
}

void fm_lock(fm_mutex *mutex)
{
    AcquireSRWLockExclusive((SRWLOCK *)mutex);
}

void fm_unlock(fm_mutex *mutex)
{
    ReleaseSRWLockExclusive((SRWLOCK *)mutex);
}

void fm_condition_new(fm_condition *condition)
{
    InitializeConditionVariable((CONDITION_VARIABLE *)condition);
}

void fm_condition_free(fm_condition *condition)
{
    (void)condition;
}

void fm_condition_wait(fm_condition *condition, fm_mutex *mutex)
{
    SleepConditionVariableSRW((CONDITION_VARIABLE *)condition, (SRWLOCK *)mutex, INFINITE, 0);
}

void fm_condition_wake_all(fm_condition *condition)
{
    WakeAllConditionVariable((CONDITION_VARIABLE *)condition);
}

void fm_yield(void)
{
    SwitchToThread();
}

int fm_core(void)
{
    return (int)GetCurrentProcessorNumber();
}

void fm_leave(int core)
{
    DWORD_PTR others, of_system;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &others, &of_system))
        return;
    others &= ~((DWORD_PTR)1 << core);
    DWORD_PTR before = others ? SetThreadAffinityMask(GetCurrentThread(), others) : 0;
    if (before)
        SetThreadAffinityMask(GetCurrentThread(), before);
}

/* WaitOnAddress knows the threads of one process only. The event stays set if it is set before somebody waits. */
int fm_wait(const uint32_t *word, uint32_t value, uintptr_t event, int64_t nanoseconds)
{
    DWORD milliseconds = nanoseconds < 0 ? INFINITE : (DWORD)(nanoseconds / (1000 * MICROSECOND));
    (void)word, (void)value;
    return WaitForSingleObject((HANDLE)event, milliseconds) == WAIT_TIMEOUT;
}

void fm_wake(uint32_t *word, uintptr_t event)
{
    (void)word;
    SetEvent((HANDLE)event);
}

ptrdiff_t fm_receive(int socket, void *to, size_t n, int waits)
{
    (void)socket, (void)to, (void)n, (void)waits;
    return -1;
}

ptrdiff_t fm_send(int socket, const void *from, size_t n)
{
    (void)socket, (void)from, (void)n;
    return -1;
}

void fm_wait_to_send(int socket, int64_t nanoseconds)
{
    (void)socket, (void)nanoseconds;
}

/* Before an exit() of any C runtime all other threads are ended; atexit() of a DLL is too late for that, and within a handler
 * of the runtime of Python nobody else could call its exit(). So modules that are loaded from now on call another function. */

static void (*before_exit)(void);

static void leave_process(int status)
{
    before_exit();
    exit(status);
}

static void __stdcall leave_process_of_system(UINT status) /* what a runtime calls that is part of the module */
{
    before_exit();
    ExitProcess(status);
}

static void replace(IMAGE_THUNK_DATA *place, uintptr_t function)
{
    DWORD before;
    if (VirtualProtect(place, sizeof *place, PAGE_READWRITE, &before)) {
        place->u1.Function = function;
        VirtualProtect(place, sizeof *place, before, &before);
    }
}

/* What a module imports from another one. */
static void replace_exits(char *base, const IMAGE_IMPORT_DESCRIPTOR *of)
{
    IMAGE_THUNK_DATA *place = (void *)(base + of->FirstThunk);
    const IMAGE_THUNK_DATA *name = (const void *)(base + of->OriginalFirstThunk);
    for (; of->OriginalFirstThunk && name->u1.AddressOfData; name++, place++) {
        const IMAGE_IMPORT_BY_NAME *import = (const void *)(base + name->u1.AddressOfData);
        if (IMAGE_SNAP_BY_ORDINAL(name->u1.Ordinal))
            continue;
        if (!strcmp(import->Name, "exit"))
            replace(place, (uintptr_t)leave_process);
        else if (!strcmp(import->Name, "ExitProcess"))
            replace(place, (uintptr_t)leave_process_of_system);
    }
}

/* LDR_DLL_NOTIFICATION_DATA: no header has it. */
struct notification {
    ULONG flags;
    const void *name, *base_name;
    char *base;
    ULONG size;
};

static void CALLBACK notice(ULONG reason, const struct notification *of, void *context)
{
    (void)context;
    if (reason != 1) /* LDR_DLL_NOTIFICATION_REASON_LOADED */
        return;
    const IMAGE_NT_HEADERS *header = (const void *)(of->base + ((const IMAGE_DOS_HEADER *)(void *)of->base)->e_lfanew);
    const IMAGE_DATA_DIRECTORY *imports = &header->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
    const IMAGE_IMPORT_DESCRIPTOR *import = (const void *)(of->base + imports->VirtualAddress);
    for (; imports->Size && import->Name; import++)
        replace_exits(of->base, import);
}

typedef LONG(NTAPI *register_t)(ULONG flags, void(CALLBACK *)(ULONG, const struct notification *, void *), void *, void **);

int fm_before_exit(void (*function)(void))
{
    void *cookie;
    register_t start = (register_t)(void *)GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "LdrRegisterDllNotification");
    before_exit = function;
    return start && !start(0, notice, 0, &cookie);
}

#else

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

void *fm_open_file(const char *path)
{
    return fopen(path, "rb");
}

void *fm_library_open(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void *fm_library_find(void *library, const char *name)
{
    return dlsym(library, name);
}

void fm_library_close(void *library)
{
    dlclose(library);
}

const char *fm_library_error(void)
{
    const char *text = dlerror();
    return text ? text : "the reason is not known";
}

int64_t fm_nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)SECOND + t.tv_nsec;
}

void *fm_allocate_aligned(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

void fm_free_aligned(void *memory)
{
    free(memory);
}

int fm_thread_start(fm_thread *thread, FM_THREAD_RESULT (*work)(void *), void *argument)
{
    return !pthread_create(thread, 0, work, argument);
}

void fm_thread_join(fm_thread thread)
{
    pthread_join(thread, 0);
}

void fm_mutex_new(fm_mutex *mutex)
{
    pthread_mutex_init(mutex, 0);
}

void fm_mutex_free(fm_mutex *mutex)
{
    pthread_mutex_destroy(mutex);
}

void fm_lock(fm_mutex *mutex)
{
    pthread_mutex_lock(mutex);
}

void fm_unlock(fm_mutex *mutex)
{
    pthread_mutex_unlock(mutex);
}

void fm_condition_new(fm_condition *condition)
{
    pthread_cond_init(condition, 0);
}

void fm_condition_free(fm_condition *condition)
{
    pthread_cond_destroy(condition);
}

void fm_condition_wait(fm_condition *condition, fm_mutex *mutex)
{
    pthread_cond_wait(condition, mutex);
}

void fm_condition_wake_all(fm_condition *condition)
{
    pthread_cond_broadcast(condition);
}

void fm_yield(void)
{
    sched_yield();
}

int fm_before_exit(void (*function)(void))
{
    return !atexit(function);
}

#if !defined(MSG_NOSIGNAL)
#define MSG_NOSIGNAL 0 /* macOS: Python ignores the signal */
#endif

static ptrdiff_t moved(ptrdiff_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : n;
}

ptrdiff_t fm_receive(int socket, void *to, size_t n, int waits)
{
    ptrdiff_t got = recv(socket, to, n, waits ? 0 : MSG_DONTWAIT);
    return got ? moved(got) : -1; /* 0: the other end is closed */
}

ptrdiff_t fm_send(int socket, const void *from, size_t n)
{
    return moved(send(socket, from, n, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void fm_wait_to_send(int socket, int64_t nanoseconds)
{
    struct pollfd its = {socket, POLLOUT, 0};
    poll(&its, 1, (int)(nanoseconds / (1000 * MICROSECOND)));
}

#if defined(__linux__)

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int fm_core(void)
{
    return sched_getcpu();
}

/* Linux may leave a thread on one core with another thread for seconds while a core is idle: it goes elsewhere, and is then
 * free again. */
void fm_leave(int core)
{
    cpu_set_t all, others;
    if (sched_getaffinity(0, sizeof all, &all))
        return;
    others = all;
    CPU_CLR((size_t)core, &others);
    if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others))
        sched_setaffinity(0, sizeof all, &all);
}

int fm_wait(const uint32_t *word, uint32_t value, uintptr_t event, int64_t nanoseconds)
{
    struct timespec time = {nanoseconds / SECOND, nanoseconds % SECOND};
    (void)event;
    return syscall(SYS_futex, word, FUTEX_WAIT, value, nanoseconds < 0 ? 0 : &time, 0, 0) && errno == ETIMEDOUT;
}

/* Linux lets sleeps of a thread end up to 50 us late, to end several of them together. */
void fm_sleep_until(int64_t nanoseconds)
{
    struct timespec time = {nanoseconds / SECOND, nanoseconds % SECOND};
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
}

void fm_wake(uint32_t *word, uintptr_t event)
{
    (void)event;
    syscall(SYS_futex, word, FUTEX_WAKE, 1, 0, 0, 0);
}

#else /* macOS, and every other system */

int fm_core(void)
{
    return -1;
}

void fm_leave(int core)
{
    (void)core;
}

/* What wakes a process by a word in shared memory has no public name before macOS 14.4. Sleeps become longer up to this. */
#define LONGEST_SLEEP (100 * MICROSECOND)

int fm_wait(const uint32_t *word, uint32_t value, uintptr_t event, int64_t nanoseconds)
{
    int64_t begin = fm_nanoseconds();
    struct timespec sleep = {0, MICROSECOND};
    (void)event;
    while (atomic_load((const _Atomic uint32_t *)word) == value) {
        if (nanoseconds >= 0 && fm_nanoseconds() - begin >= nanoseconds)
            return 1;
        nanosleep(&sleep, 0);
        if (sleep.tv_nsec < LONGEST_SLEEP)
            sleep.tv_nsec *= 2;
    }
    return 0;
}

void fm_wake(uint32_t *word, uintptr_t event)
{
    (void)word, (void)event; /* it looks */
}

void fm_sleep_until(int64_t nanoseconds)
{
    int64_t left = nanoseconds - fm_nanoseconds();
    struct timespec time = {left / SECOND, left % SECOND};
    if (left > 0)
        nanosleep(&time, 0);
}

#endif
#endif

void fm_pause(void)
{
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(_WIN32)
    YieldProcessor();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

char *fm_read_whole(const char *path, size_t *size)
{
    enum { AT_FIRST = 4096 };
    FILE *file = fm_open_file(path);
    size_t room = AT_FIRST, n = 0;
    char *content = file ? malloc(room) : 0;
    while (content) {
        n += fread(content + n, 1, room - n - 1, file);
        if (n < room - 1)
            break;
        char *larger = realloc(content, room *= 2);
        if (!larger)
            free(content);
        content = larger;
    }
    int is_read = content && !ferror(file);
    if (file)
        fclose(file);
    if (!is_read) {
        free(content);
        return 0;
    }
    content[n] = 0;
    *size = n;
    return content;
}
