/* The image of an exported system: it is loaded, its FMUs are instantiated and bound to it. The format is that of
 * fmimaster/export/image.py. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system_parts.h"

#include "calls.h"
#include "portable.h"

#define DAMAGED "'%s' is damaged. It belongs to the FMU: unpack it again."
enum { IMAGE_VERSION = 1, NO_CALL = -1, ALIGNMENT = 64, LONGEST_TEXT = 4096, LONGEST_NAME = 256 };

/* The functions that an image can have: those of `functions` in fmimaster/export/image.py. */
#define FUNCTION(name) {#name, (void (*)(void))name}
static const struct {
    const char *name;
    void (*function)(void);
} FUNCTIONS[] = {
    FUNCTION(fm_assumed_outputs), FUNCTION(fm_weighted_change), FUNCTION(fm_bond_powers),
    FUNCTION(fm_bond_powers_at_instant), FUNCTION(fm_bond_powers_refreshed), FUNCTION(fm_step_size),
    FUNCTION(fm_prediction_error), FUNCTION(fm_energy_difference), FUNCTION(fm_input_errors), FUNCTION(fm_loop_begin),
    FUNCTION(fm_loop_sweep), FUNCTION(fm_multiply_partials),
};
enum { N_FUNCTIONS = sizeof FUNCTIONS / sizeof *FUNCTIONS };

typedef void *(*instantiate2_t)(const char *, int, const char *, const char *, const fm_callbacks2 *, int, int);
typedef void *(*instantiate3_t)(const char *, const char *, const char *, bool, bool, bool, bool, const uint32_t *, size_t, void *,
                                void (*)(void *, int, const char *, const char *), void *);
typedef int (*binary_t)(void *, const uint32_t *, size_t, size_t *, const char **, size_t);

/* The image --------------------------------------------------------------------------------------------------------- */

typedef struct {
    fm_system *s;
    const char *at, *end;
    int is_whole;
} reader;

static uint64_t take(reader *r)
{
    uint64_t value = 0;
    if (r->end - r->at < 8)
        r->is_whole = 0;
    else
        memcpy(&value, r->at, 8), r->at += 8;
    return value;
}

/* How many rows of a table follow, each with so many numbers. */
static uint64_t take_count(reader *r, uint64_t width)
{
    uint64_t n = take(r);
    if (n > (uint64_t)(r->end - r->at) / (8 * width))
        r->is_whole = 0, n = 0;
    return n;
}

static const char *take_text(reader *r, size_t *size)
{
    uint64_t n = take(r);
    const char *text = r->at;
    if (!r->is_whole || n >= (uint64_t)(r->end - r->at) || r->at[n] != 0) {
        r->is_whole = 0;
        return "";
    }
    r->at += n + 1;
    if (size)
        *size = (size_t)n;
    return text;
}

static fm_place take_place(reader *r)
{
    fm_place p = {take(r), 0};
    p.offset = take(r);
    return p;
}

/* The address of a place with so many bytes. */
static void *address_of(reader *r, fm_place p, size_t bytes)
{
    fm_system *s = r->s;
    if (!r->is_whole || p.block >= s->n_blocks || p.offset > s->sizes[p.block] || s->sizes[p.block] - p.offset < bytes) {
        r->is_whole = 0;
        return 0;
    }
    return s->memory + s->begins[p.block] + p.offset;
}

static void put(reader *r, fm_place p, const void *value)
{
    void *target = address_of(r, p, sizeof value);
    if (target)
        memcpy(target, &value, sizeof value);
}

/* Reads the file, and tells whether it is an image for this kernel. */
static int read_file(fm_system *s, const char *path, size_t *size)
{
    s->file = fm_read_whole(path, size);
    return s->file ? FM_OK : FM_SAY_ERROR("'%s' cannot be read. It belongs to the FMU: unpack it again.", path);
}

/* CRC-32 of RFC 1952, which the image has at its end. */
static uint32_t checksum(const char *bytes, const char *end)
{
    uint32_t sum = 0xFFFFFFFF;
    for (; bytes < end; bytes++) {
        sum ^= (unsigned char)*bytes;
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320 : 0);
    }
    return ~sum;
}

static int check_head(fm_system *s, reader *r, const char *path)
{
    char digest[65];
    if (r->end - r->at < 8 + 8 + 32 || memcmp(r->at, "FMIMAGE", 8))
        return FM_SAY_ERROR("'%s' is no image of a system", path);
    r->at += 8;
    uint64_t version = take(r);
    for (int i = 0; i < 32; i++)
        snprintf(digest + 2 * i, 3, "%02x", (unsigned char)r->at[i]);
    r->at += 32;
    if (version != IMAGE_VERSION || strcmp(digest, fm_kernel_hash) || take(r) != sizeof(fm_kernel) ||
        take(r) != sizeof(fm_instruction))
        return FM_SAY_ERROR("'%s' was made for another kernel than that of this binary. Export the system again.", path);
    r->end -= 8;
    reader last = {s, r->end, r->end + 8, 1};
    if (r->end < r->at || take(&last) != checksum(s->file, r->end))
        return FM_SAY_ERROR(DAMAGED, path);
    return FM_OK;
}

static int take_blocks(fm_system *s, reader *r)
{
    s->n_blocks = take_count(r, 1);
    s->sizes = fm_room(s->n_blocks, sizeof *s->sizes);
    s->begins = fm_room(s->n_blocks, sizeof *s->begins);
    if (!s->sizes || !s->begins)
        return 0;
    for (uint64_t b = 0; b < s->n_blocks; b++) {
        s->sizes[b] = take(r);
        s->begins[b] = s->size;
        if (s->sizes[b] > (uint64_t)(r->end - r->at)) /* their bytes are in the file */
            return r->is_whole = 0;
        s->size += (s->sizes[b] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    s->memory = fm_allocate_aligned(ALIGNMENT, s->size + ALIGNMENT);
    if (!s->memory)
        return 0;
    memset(s->memory, 0, s->size + ALIGNMENT);
    const char *content = r->end;
    for (uint64_t b = s->n_blocks; b--;) {
        content -= s->sizes[b];
        if (content < r->at)
            return r->is_whole = 0;
        memcpy(s->memory + s->begins[b], content, s->sizes[b]);
    }
    return 1;
}

static void take_addresses(fm_system *s, reader *r)
{
    s->n_addresses = take_count(r, 2);
    s->addresses = fm_room(s->n_addresses, sizeof *s->addresses);
    s->addresses_now = fm_room(s->n_addresses, sizeof *s->addresses_now);
    for (uint64_t i = 0; i < s->n_addresses && s->addresses; i++)
        s->addresses[i] = address_of(r, take_place(r), sizeof(void *));
    for (uint64_t n = take_count(r, 4); n; n--) {
        fm_place from = take_place(r), to = take_place(r);
        put(r, from, address_of(r, to, 0));
    }
    uint64_t n_names = take_count(r, 1);
    void (**functions)(void) = fm_room(n_names, sizeof *functions);
    for (uint64_t i = 0; i < n_names && functions; i++) {
        const char *name = take_text(r, 0);
        for (int f = 0; f < N_FUNCTIONS; f++)
            if (!strcmp(FUNCTIONS[f].name, name))
                functions[i] = FUNCTIONS[f].function;
        if (!functions[i]) {
            FM_SAY_ERROR("the image needs the function %s, which this kernel does not offer", name);
            r->is_whole = 0;
        }
    }
    for (uint64_t n = take_count(r, 3); n; n--) {
        fm_place from = take_place(r);
        uint64_t i = take(r);
        void *target = address_of(r, from, sizeof(void *));
        if (i >= n_names)
            r->is_whole = 0;
        else if (target && functions)
            memcpy(target, &functions[i], sizeof functions[i]);
    }
    free(functions);
}

/* FMUs -------------------------------------------------------------------------------------------------------------- */

/* Some FMUs do not pass on what they were given, but null or a small number, where no memory is. */
static int is_ours(const void *environment)
{
    enum { FIRST_PAGE = 4096 };
    return (uintptr_t)environment >= FIRST_PAGE;
}

static void log_of_member2(void *environment, const char *name, int status, const char *category, const char *format, ...)
{
    fm_member *m = environment;
    char text[LONGEST_TEXT];
    va_list arguments;
    (void)name;
    if (!is_ours(environment))
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format ? format : "", arguments);
    va_end(arguments);
    fm_say(m->system, status, category ? category : fm_category_of(status), "[%s] %s", m->name, text);
}

static void log_of_member3(void *environment, int status, const char *category, const char *text)
{
    fm_member *m = environment;
    if (!is_ours(environment))
        return;
    fm_say(m->system, status, category ? category : fm_category_of(status), "[%s] %s", m->name, text ? text : "");
}

static void log_of_member3_in_updates(void *environment, int status, const char *category, const char *text)
{
    const fm_updates *u = environment;
    log_of_member3(u->self, status, category, text);
}

static void *find(fm_member *m, const char *function)
{
    char name[100];
    snprintf(name, sizeof name, "fmi%d%s", (int)m->version, function);
    return fm_library_find(m->library, name);
}

/* A folder's path and a part of it as a URI, RFC 8089. */
static void file_uri(const char *folder, const char *part, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "file://%s", *folder == '/' ? "" : "/");
    for (const char *const paths[] = {folder, part}, *const *p = paths; p < paths + 2; p++)
        for (const unsigned char *c = (const unsigned char *)*p; *c && n + 4 < size; c++) {
            if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("/-._~:", *c))
                text[n++] = (char)*c;
            else if (*c == '\\')
                text[n++] = '/';
            else
                n += (size_t)snprintf(text + n, size - n, "%%%02X", *c);
        }
    text[n] = 0;
}

/* A call in Intermediate Update Mode has failed: the step ends with it. */
static void update_failed(void *self, int status)
{
    fm_member *m = self;
    fm_told(m->system, m, status, "Set in Intermediate Update Mode");
}

static int load(fm_system *s, fm_member *m, const char *folder, const char *identifier)
{
    const char *const platforms[] = {FM_PLATFORM, FM_PLATFORM_OF_FMI2};
    char path[LONGEST_TEXT];
    for (int i = 0; i < 2 && !m->library; i++) {
        snprintf(path, sizeof path, "%.*s/binaries/%s/%.*s%s", FM_LONGEST_FOLDER, folder, platforms[i], LONGEST_NAME, identifier,
                 FM_LIBRARY_SUFFIX);
        FILE *file = fm_open_file(path);
        if (!file)
            continue;
        fclose(file);
        m->library = fm_library_open(path);
        if (!m->library)
            return FM_SAY_ERROR("[%s] '%s' cannot be loaded: %s", m->name, path, fm_library_error());
    }
    if (!m->library)
        return FM_SAY_ERROR("[%s] '%s' has no binary for %s", m->name, folder, FM_PLATFORM);
    for (int f = 0; f < FM_FUNCTIONS; f++) {
        const char *name = m->version == 2 ? fm_fmi2_name(f) : fm_fmi3_name(f);
        m->functions[f] = name ? find(m, name) : 0;
    }
    m->free_instance = find(m, "FreeInstance");
    m->reset = find(m, "Reset");
    m->set_logging = find(m, "SetDebugLogging");
    m->state_size = find(m, m->version == 2 ? "SerializedFMUstateSize" : "SerializedFMUStateSize");
    m->serialize = find(m, m->version == 2 ? "SerializeFMUstate" : "SerializeFMUState");
    m->deserialize = find(m, m->version == 2 ? "DeSerializeFMUstate" : "DeserializeFMUState");
    return FM_OK;
}

static int instantiate(fm_system *s, fm_member *m, const char *folder, const char *token, const uint32_t *required, size_t n)
{
    char resources[LONGEST_TEXT];
    fm_fmu *fmu = m->fmu;
    void *make = find(m, m->version == 2 ? "Instantiate" : "InstantiateCoSimulation");
    if (!make)
        return FM_SAY_ERROR("[%s] the FMU cannot be instantiated for Co-Simulation: a function is missing", m->name);
    if (m->version == 2) {
        m->callbacks = (fm_callbacks2){log_of_member2, calloc, free, 0, m};
        file_uri(folder, "/resources", resources, sizeof resources);
        fmu->component = ((instantiate2_t)make)(m->name, 1, token, resources, &m->callbacks, 0, s->logging_on);
    } else {
        snprintf(resources, sizeof resources, "%.*s/resources/", FM_LONGEST_FOLDER, folder);
        if (fmu->updates) {
            fmu->updates->self = m;
            fmu->updates->fail = update_failed;
        }
        fmu->component = ((instantiate3_t)make)(m->name, token, resources, false, s->logging_on, false, false, n ? required : 0, n,
                                                fmu->updates ? (void *)fmu->updates : (void *)m,
                                                fmu->updates ? log_of_member3_in_updates : log_of_member3,
                                                fmu->updates ? (void *)fm_intermediate_update : 0);
    }
    if (!fmu->component)
        return FM_SAY_ERROR("[%s] the FMU cannot be instantiated. Its messages say why.", m->name);
    fmu->functions = m->functions;
    return FM_OK;
}

static int take_members(fm_system *s, reader *r, const char *resources)
{
    char folder[LONGEST_TEXT];
    s->members = fm_room(s->n_members, sizeof *s->members);
    for (uint64_t i = 0; i < s->n_members && s->members; i++) {
        fm_member *m = &s->members[i];
        fm_place at = take_place(r);
        m->system = s;
        m->version = take(r);
        const char *path = take_text(r, 0);
        m->name = take_text(r, 0);
        const char *identifier = take_text(r, 0), *token = take_text(r, 0);
        uint64_t n = take_count(r, 1);
        uint32_t *required = fm_room(n, sizeof *required);
        for (uint64_t k = 0; k < n && required; k++)
            required[k] = (uint32_t)take(r);
        m->fmu = address_of(r, at, sizeof *m->fmu);
        int is_absolute = *path == '/' || *path == '\\' || (*path && path[1] == ':');
        snprintf(folder, sizeof folder, "%.*s%s%.*s", is_absolute ? 0 : FM_LONGEST_FOLDER, resources, is_absolute ? "" : "/",
                 FM_LONGEST_FOLDER, path);
        int status = FM_ERROR;
        int is_short = strlen(identifier) < LONGEST_NAME && strlen(path) + strlen(resources) < FM_LONGEST_FOLDER;
        if (r->is_whole && (m->version == 2 || m->version == 3) && is_short) {
            status = load(s, m, folder, identifier);
            if (status == FM_OK)
                status = instantiate(s, m, folder, token, required, n);
        } else {
            r->is_whole = 0;
        }
        free(required);
        if (status != FM_OK)
            return status;
        (m->version == 2 ? fm_fmi2_table : fm_fmi3_table)(m->fmu, (fm_instance *)&s->k->instances[i]);
    }
    return s->members ? FM_OK : FM_ERROR;
}

static int no_call(const fm_segment *segment)
{
    (void)segment;
    return FM_OK;
}

int fm_bind_segment(const fm_member *m, uint64_t which, fm_segment *segment)
{
    if ((int32_t)which == NO_CALL) {
        segment->transfer = no_call;
        return 1;
    }
    int function = (int)which, is_get = function < FM_SET_FLOAT64;
    if (which > FM_SET_BINARY)
        return 0;
    (m->version == 2 ? fm_fmi2_bind : fm_fmi3_bind)(m->fmu, function - (is_get ? FM_GET_FLOAT64 : FM_SET_FLOAT64), is_get, segment);
    return 1;
}

static void bind_calls(fm_system *s, reader *calls, reader *derivatives)
{
    for (uint64_t n = take_count(calls, 4); n; n--) {
        fm_segment *segment = address_of(calls, take_place(calls), sizeof *segment);
        uint64_t instance = take(calls), which = take(calls);
        if (!segment || instance >= s->n_members || !fm_bind_segment(&s->members[instance], which, segment)) {
            calls->is_whole = 0;
            return;
        }
    }
    for (uint64_t n = take_count(derivatives, 4); n; n--) {
        fm_derivative *derivative = address_of(derivatives, take_place(derivatives), sizeof *derivative);
        uint64_t instance = take(derivatives);
        take(derivatives);
        if (!derivative || instance >= s->n_members) {
            derivatives->is_whole = 0;
            return;
        }
        const fm_member *m = &s->members[instance];
        (m->version == 2 ? fm_fmi2_bind_derivative : fm_fmi3_bind_derivative)(m->fmu, derivative);
    }
}

static void skip_table(reader *r, uint64_t width)
{
    uint64_t n = take_count(r, width);
    r->at += 8 * width * n;
}

/* What the image says besides: variables, programs, the grid. */

static void take_programs(fm_system *s, reader *r)
{
    enum { KERNEL, ENTER, SETTLE, BEGIN, FIRST, COMMIT, ROLLBACK, END, ATTEMPTS };
    uint64_t n = take_count(r, 2);
    if (n <= ATTEMPTS) {
        r->is_whole = 0;
        return;
    }
    s->n_programs = n - 1;
    s->n_attempts = n - ATTEMPTS;
    s->k = address_of(r, take_place(r), sizeof *s->k);
    const fm_instruction **named[] = {&s->enter, &s->settle, &s->begin, &s->first_attempt, &s->commit, &s->rollback, &s->end};
    for (int i = 0; i < ATTEMPTS - ENTER; i++)
        *named[i] = address_of(r, take_place(r), sizeof(fm_instruction));
    s->attempts = fm_room(2 * s->n_attempts, sizeof *s->attempts);
    for (uint64_t i = 0; i < s->n_attempts && s->attempts; i++)
        s->attempts[i] = s->attempts[i + s->n_attempts] = address_of(r, take_place(r), sizeof(fm_instruction));
}

static void take_grid(fm_system *s, reader *r)
{
    s->resolution = (double)(int64_t)take(r);
    s->first = (int64_t)take(r);
    s->step = (int64_t)take(r);
    s->start = (double)s->first / s->resolution;
    uint64_t n = take_count(r, 1);
    s->offsets = fm_room(n, sizeof *s->offsets);
    for (uint64_t i = 0; i < n && s->offsets; i++)
        s->offsets[i] = (int64_t)take(r);
    if (n != s->n_attempts || s->step <= 0 || !(s->resolution > 0.0))
        r->is_whole = 0;
    s->n_places = take(r);
    s->n_buffers = take(r);
}

static void take_variables(fm_system *s, reader *r)
{
    s->n_variables = take_count(r, 10);
    s->variables = fm_room(s->n_variables, sizeof *s->variables);
    for (uint64_t i = 0; i < s->n_variables && s->variables; i++) {
        fm_variable *v = &s->variables[i];
        v->instance = take(r), v->type = take(r), v->reference = take(r), v->size = take(r);
        v->value = take_place(r), v->starts[0] = take_place(r), v->starts[1] = take_place(r);
        if (v->instance >= s->n_members || v->type >= FM_CLOCK || !v->size || v->size > INT32_MAX)
            r->is_whole = 0;
        for (int k = 0; r->is_whole && k < 3; k++) {
            const fm_place *p = k ? &v->starts[k - 1] : &v->value;
            if (p->block != FM_NOWHERE)
                address_of(r, *p, v->size * fm_size[v->type]);
        }
    }
    s->n_texts = take_count(r, 5);
    s->texts = fm_room(s->n_texts, sizeof *s->texts);
    for (uint64_t i = 0; i < s->n_texts && s->texts; i++) {
        fm_start_text *t = &s->texts[i];
        t->instance = take(r), t->type = take(r), t->reference = take(r), t->n = take_count(r, 1);
        t->values = fm_room(t->n, sizeof *t->values);
        t->sizes = fm_room(t->n, sizeof *t->sizes);
        for (uint64_t k = 0; k < t->n && t->values && t->sizes; k++)
            t->values[k] = take_text(r, &t->sizes[k]);
        if (t->instance >= s->n_members)
            r->is_whole = 0;
    }
}

/* The code of a program, as the image has them. */
static const fm_instruction *program(const fm_system *s, uint64_t i)
{
    const fm_instruction *const named[] = {s->enter, s->settle, s->begin, s->first_attempt, s->commit, s->rollback, s->end};
    enum { NAMED = sizeof named / sizeof *named };
    return i < NAMED ? named[i] : s->attempts[i - NAMED];
}

static int is_before(const fm_system *s, uint64_t i)
{
    for (uint64_t j = 0; j < i; j++)
        if (program(s, j) == program(s, i))
            return 1;
    return 0;
}

static int fuse(fm_system *s)
{
    s->fused = fm_room(s->n_programs, sizeof *s->fused);
    s->sources = fm_room(s->n_programs, sizeof *s->sources);
    for (uint64_t i = 0; i < s->n_programs && s->fused && s->sources; i++) {
        fm_instruction *code = (fm_instruction *)program(s, i);
        size_t n_calls = 0, n_sources = 0;
        if (is_before(s, i))
            continue;
        fm_fuse(s->k, code, 0, 0, &n_calls, &n_sources);
        s->fused[i] = fm_allocate_aligned(ALIGNMENT, (n_calls + 1) * sizeof(fm_fused));
        s->sources[i] = fm_room(n_sources, sizeof(double *));
        if (!s->fused[i] || !s->sources[i])
            return 0;
        memset(s->fused[i], 0, (n_calls + 1) * sizeof(fm_fused));
        fm_fuse(s->k, code, s->fused[i], s->sources[i], &n_calls, &n_sources);
    }
    return s->fused && s->sources;
}

/* Text and binaries are not in the memory of the image: there, all are equal. */
static int copy_objects(void *self, void **target, void *const *source, size_t n)
{
    (void)self;
    memcpy(target, source, n * sizeof *target);
    return FM_OK;
}

static int differ_objects(void *self, void *const *one, void *const *other, size_t n)
{
    (void)self, (void)one, (void)other, (void)n;
    return FM_AGAIN;
}

static int sample_objects(void *self)
{
    (void)self;
    return FM_OK;
}

int fm_set_texts(fm_system *s)
{
    for (uint64_t i = 0; i < s->n_texts; i++) {
        fm_start_text *t = &s->texts[i];
        fm_member *m = &s->members[t->instance];
        uint32_t reference = (uint32_t)t->reference;
        int is_binary = t->type == FM_BINARY, which = is_binary ? FM_SET_BINARY : FM_SET_STRING, status = FM_MISSING;
        const char *function = is_binary ? "SetBinary" : "SetString";
        void *address = m->functions[which];
        if (address && is_binary)
            status = ((binary_t)address)(m->fmu->component, &reference, 1, t->sizes, t->values, t->n);
        else if (address && m->version == 2)
            status = ((fm_access2_t)address)(m->fmu->component, &reference, 1, t->values);
        else if (address)
            status = ((fm_access3_t)address)(m->fmu->component, &reference, 1, t->values, t->n);
        if (fm_failed(status))
            return fm_told(s, m, status, function);
    }
    return FM_OK;
}

int fm_system_build(fm_system *s, const char *resources)
{
    char path[LONGEST_TEXT];
    size_t size = 0;
    snprintf(path, sizeof path, "%.*s/system.image", FM_LONGEST_FOLDER, resources);
    int status = read_file(s, path, &size);
    if (status != FM_OK)
        return status;
    reader r = {s, s->file, s->file + size, 1};
    status = check_head(s, &r, path);
    if (status != FM_OK)
        return status;
    s->n_members = take_count(&r, 6);
    if (take_blocks(s, &r) && r.is_whole)
        take_addresses(s, &r);
    reader calls = r, derivatives;
    skip_table(&r, 4);
    derivatives = r;
    skip_table(&r, 4);
    take_programs(s, &r);
    if (r.is_whole && s->k && (uint64_t)s->k->n_instances == s->n_members) {
        take_grid(s, &r);
        status = take_members(s, &r, resources);
        if (status == FM_OK)
            take_variables(s, &r);
    } else {
        r.is_whole = 0;
    }
    if (status == FM_OK && r.is_whole)
        bind_calls(s, &calls, &derivatives);
    if (!(r.is_whole && calls.is_whole && derivatives.is_whole))
        return FM_SAY_ERROR(DAMAGED, path);
    if (status != FM_OK)
        return status;
    s->k->objects = (fm_objects){copy_objects, differ_objects, sample_objects, 0};
    if (!fuse(s) || !(s->at_first = fm_room(s->size, 1)))
        return FM_SAY_ERROR("there is no memory for the system");
    memcpy(s->at_first, s->memory, s->size);
    return fm_set_texts(s);
}

