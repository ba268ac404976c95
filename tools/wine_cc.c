/* cc.exe for Windows programs under wine: starts the C compiler of the machine below, named by CC_OF_MACHINE.
 *
 * No Windows build of a compiler that a package brings runs under wine 8. wine starts programs of Linux, but gives no
 * handle of them: a shell script writes the end of the compiler to a file, and what it says to another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

typedef char *(CDECL *to_unix)(const WCHAR *);

enum { NO_WINE = 99, NO_START = 98, NO_END = 97, MOST_WAITS = 12000, WAIT_MS = 50 };

static to_unix unix_name;

/* The Linux path of a Windows path. */
static const char *linux_path(const char *path)
{
    WCHAR wide[4096];
    MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 4096);
    return unix_name(wide);
}

static int is_absolute(const char *path)
{
    return (path[0] && path[1] == ':') || path[0] == '\\';
}

/* The command as lines of a shell script, that leaves its exit status in a file.
 *
 * zig compiles the C library anew, for minutes, for each other choice of the last two options, and for each other path to
 * it, which is relative in a folder that contains zig. */
static void write_script(const char *script, const char *done, int count, char **arguments)
{
    FILE *file = fopen(script, "wb");
    const char *compiler = getenv("CC_OF_MACHINE");
    fprintf(file, "here=\"$PWD\"; cd /\n%s", compiler ? compiler : "cc");
    for (int i = 1; i < count; i++) {
        const char *argument = arguments[i];
        int option = !strncmp(argument, "-I", 2) || !strncmp(argument, "-L", 2) ? 2 : 0;
        const char *path = argument + option;
        if (is_absolute(path))
            fprintf(file, " '%.*s%s'", option, argument, linux_path(path));
        else if (argument[0] == '-' && !option)
            fprintf(file, " '%s'", argument);
        else
            fprintf(file, " '%.*s'\"$here\"'/%s'", option, argument, path);
    }
    fprintf(file, " -O2 -s >'%s.log' 2>&1\necho $? >'%s.new'; mv '%s.new' '%s'\n", done, done, done, done);
    fclose(file);
}

/* The exit status, once it is there. */
static int wait_for(const char *done)
{
    for (int k = 0; k < MOST_WAITS; k++) {
        FILE *file = fopen(done, "rb");
        int status = NO_END;
        if (file) {
            int found = fscanf(file, "%d", &status);
            fclose(file);
            return found == 1 ? status : NO_END;
        }
        Sleep(WAIT_MS);
    }
    return NO_END;
}

static void show(const char *log)
{
    char text[4096];
    FILE *file = fopen(log, "rb");
    if (!file)
        return;
    for (size_t n; (n = fread(text, 1, sizeof text, file)) > 0;)
        fwrite(text, 1, n, stderr);
    fclose(file);
}

int main(int argc, char **argv)
{
    char folder[MAX_PATH], script[MAX_PATH], done[MAX_PATH], log[MAX_PATH + 4], command[2 * MAX_PATH];
    STARTUPINFOA start = {.cb = sizeof start};
    PROCESS_INFORMATION made;
    unix_name = (to_unix)(void *)GetProcAddress(GetModuleHandleA("kernel32.dll"), "wine_get_unix_file_name");
    if (!unix_name)
        return NO_WINE;
    GetTempPathA(sizeof folder, folder);
    snprintf(script, sizeof script, "%scc-%lu.sh", folder, GetCurrentProcessId());
    snprintf(done, sizeof done, "%scc-%lu.done", folder, GetCurrentProcessId());
    snprintf(log, sizeof log, "%s.log", done);
    remove(done); /* of an earlier process with the same number */
    write_script(script, linux_path(done), argc, argv);
    snprintf(command, sizeof command, "\"Z:\\bin\\sh\" \"%s\"", linux_path(script));
    if (!CreateProcessA(NULL, command, NULL, NULL, FALSE, 0, NULL, NULL, &start, &made))
        return NO_START;
    int status = wait_for(done);
    show(log);
    remove(log);
    remove(done);
    remove(script);
    return status;
}
