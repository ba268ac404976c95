/* In place of pyconfig.h of the Python that runs here: sizes of all 64-bit systems for which the kernel is built. The
 * stable ABI needs no more. */
#ifndef Py_PYCONFIG_H
#define Py_PYCONFIG_H
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_FLOAT 4
#define SIZEOF_DOUBLE 8
#define SIZEOF_TIME_T 8
#define SIZEOF_PID_T 4
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_MAX_ALIGN_T 8
#define HAVE_SSIZE_T 1
#define HAVE_STDDEF_H 1
#define HAVE_STDINT_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TYPES_H 1
#define STDC_HEADERS 1
#define WITH_THREAD 1
#ifdef _WIN32
#define MS_WINDOWS 1
#define MS_WIN32 1
#define MS_WIN64 1
#define NT_THREADS 1
#define SIZEOF_LONG 4
#define ALIGNOF_LONG 4
#define SIZEOF_WCHAR_T 2
#define Py_ENABLE_SHARED 1
#define HAVE_DECLSPEC_DLL 1
#else
#define _GNU_SOURCE 1
#define HAVE_PTHREAD_H 1
#define HAVE_UNISTD_H 1
#define SIZEOF_LONG 8
#define ALIGNOF_LONG 8
#define SIZEOF_WCHAR_T 4
#endif
#endif
