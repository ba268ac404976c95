/* What differs between systems and between compilers. Only this header and portable.c ask which they are; all else is C11. */

#ifndef FM_PORTABLE_H
#define FM_PORTABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Attributes -------------------------------------------------------------------------------------------------------- */

#if defined(__GNUC__)
#define FM_INLINE static inline __attribute__((always_inline))
#define FM_NOT_INLINE static __attribute__((noinline))
#define FM_UNLIKELY(condition) __builtin_expect(condition, 0)
#define FM_UNREACHABLE __builtin_unreachable()
#elif defined(_MSC_VER)
#define FM_INLINE static __forceinline
#define FM_NOT_INLINE static __declspec(noinline)
#define FM_UNLIKELY(condition) (condition)
#define FM_UNREACHABLE __assume(0)
#else
#define FM_INLINE static inline
#define FM_NOT_INLINE static
#define FM_UNLIKELY(condition) (condition)
#define FM_UNREACHABLE break
#endif

/* A function with loops that are worth vectors: GCC makes few at -O2. */
#if defined(__GNUC__) && !defined(__clang__)
#define FM_VECTORS __attribute__((optimize("O3"), noinline))
#else
#define FM_VECTORS
#endif

/* Whole numbers ----------------------------------------------------------------------------------------------------- */

/* a * b: returns the lower half. */
static inline uint64_t fm_product(uint64_t a, uint64_t b, uint64_t *upper)
{
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    *upper = (uint64_t)(product >> 64);
    return (uint64_t)product;
#else
    uint64_t a1 = a >> 32, a0 = (uint32_t)a, b1 = b >> 32, b0 = (uint32_t)b;
    uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)middle;
    *upper = a1 * b1 + (middle >> 32) + (other >> 32);
    return other << 32 | (uint32_t)low;
#endif
}

/* How many leading bits of n are 0; n is not 0. */
static inline int fm_leading_zeros(uint64_t n)
{
#if defined(__GNUC__)
    return __builtin_clzll(n);
#else
    int zeros = 0;
    for (; !(n >> 63); n <<= 1)
        zeros++;
    return zeros;
#endif
}

/* Fields of kernel.h that others read or write meanwhile: cffi knows plain types only; atomic ones have the same form. */

static inline int fm_load(const int *field)
{
    return atomic_load_explicit((const atomic_int *)field, memory_order_relaxed);
}

static inline void fm_store(int *field, int value)
{
    atomic_store_explicit((atomic_int *)field, value, memory_order_relaxed);
}

/* With what was written before. */
static inline void fm_publish(int *field, int value)
{
    atomic_store_explicit((atomic_int *)field, value, memory_order_release);
}

static inline int fm_acquire(const int *field)
{
    return atomic_load_explicit((const atomic_int *)field, memory_order_acquire);
}

/* Time and memory --------------------------------------------------------------------------------------------------- */

/* A clock that is never set, in ns. */
int64_t fm_nanoseconds(void);

/* Sleep until it shows a time in the future; a signal may end it earlier. */
void fm_sleep_until(int64_t nanoseconds);

void *fm_allocate_aligned(size_t alignment, size_t size);
void fm_free_aligned(void *memory);

/* Threads. What their types are made of begins with zeros. ------------------------------------------------------------ */

#if defined(_WIN32) /* without windows.h, which makes a macro of `near` */
typedef uintptr_t fm_thread;
typedef struct {
    void *of_system;
} fm_mutex, fm_condition;
#define FM_THREAD_RESULT unsigned __stdcall
#else
#include <pthread.h>
typedef pthread_t fm_thread;
typedef pthread_mutex_t fm_mutex;
typedef pthread_cond_t fm_condition;
#define FM_THREAD_RESULT void *
#endif

/* Returns 0 if there cannot be another thread. */
int fm_thread_start(fm_thread *thread, FM_THREAD_RESULT (*work)(void *), void *argument);
void fm_thread_join(fm_thread thread);
void fm_mutex_new(fm_mutex *mutex);
void fm_mutex_free(fm_mutex *mutex);
void fm_lock(fm_mutex *mutex);
void fm_unlock(fm_mutex *mutex);
void fm_condition_new(fm_condition *condition);
void fm_condition_free(fm_condition *condition);
void fm_condition_wait(fm_condition *condition, fm_mutex *mutex);
void fm_condition_wake_all(fm_condition *condition);

/* In a loop that looks at a word again and again. */
void fm_pause(void);

/* Let another thread have this core. */
void fm_yield(void);

/* The core of this thread; -1 if that is not known. */
int fm_core(void);

/* Move this thread to another core if it may use one. */
void fm_leave(int core);

/* Processes --------------------------------------------------------------------------------------------------------- */

/* Sleep as long as a word in shared memory has this value, at most for so many ns, with -1 without end; it may be woken
 * earlier. Returns whether the time is over. `event`: see fm_wakers. */
int fm_wait(const uint32_t *word, uint32_t value, uintptr_t event, int64_t nanoseconds);

/* Wake the process that waits for that word. */
void fm_wake(uint32_t *word, uintptr_t event);

/* Sockets; Windows has none here. What has come, at most n bytes: how many, 0 if none has come, -1 if no more will. If it waits,
 * it sleeps until some have come, or as long as the socket may wait. */
ptrdiff_t fm_receive(int socket, void *to, size_t n, int waits);
/* How many bytes were taken to be sent; -1 if none will be. */
ptrdiff_t fm_send(int socket, const void *from, size_t n);
/* Sleep until some can be sent, or until the time in ns is over. */
void fm_wait_to_send(int socket, int64_t nanoseconds);

/* Files and libraries, for systems that run without Python --------------------------------------------------------------- */

/* What FMI 3.0 and FMI 2.0 call this platform, and the end of the name of a library. */
#if defined(_WIN32)
#define FM_SYSTEM_NAME "windows"
#define FM_LIBRARY_SUFFIX ".dll"
#define FM_PLATFORM_OF_FMI2 "win64"
#define FM_HAS_DRIVES 1 /* a path can begin with the letter of a drive */
#elif defined(__APPLE__)
#define FM_SYSTEM_NAME "darwin"
#define FM_LIBRARY_SUFFIX ".dylib"
#define FM_PLATFORM_OF_FMI2 "darwin64"
#define FM_HAS_DRIVES 0
#else
#define FM_SYSTEM_NAME "linux"
#define FM_LIBRARY_SUFFIX ".so"
#define FM_PLATFORM_OF_FMI2 "linux64"
#define FM_HAS_DRIVES 0
#endif
#if defined(__aarch64__) || defined(_M_ARM64)
#define FM_PLATFORM "aarch64-" FM_SYSTEM_NAME
#else
#define FM_PLATFORM "x86_64-" FM_SYSTEM_NAME
#endif

/* A file to read, by its path in UTF-8; null if there is none. */
void *fm_open_file(const char *path);

/* The bytes of a file, and a null behind them, to be freed; null if it cannot be read. */
char *fm_read_whole(const char *path, size_t *size);

/* A library by its path in UTF-8, null if it cannot be loaded; why, in words, until the next call. */
void *fm_library_open(const char *path);
void *fm_library_find(void *library, const char *name);
void fm_library_close(void *library);
const char *fm_library_error(void);

/* Have a function called when this process calls exit(); on Windows when a DLL does that is loaded later. Returns 0 if that is
 * not possible. */
int fm_before_exit(void (*function)(void));

#endif
