#include "agents/retrieve/rag/query/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

struct heard {
    char text[4096];
};

static void hear(void *context, const char *term, size_t length, enum word_kind kind)
{
    struct heard *heard = context;
    static const char marks[] = {
        [WORD_PLAIN] = ' ', [WORD_WHOLE] = '=', [WORD_PART] = '-', [WORD_PREFIX] = '<'};
    size_t used = strlen(heard->text);
    snprintf(heard->text + used, sizeof heard->text - used, "%c%.*s", marks[kind], (int)length,
             term);
}

static void expect(const char *text, const char *terms, size_t count)
{
    struct heard heard = {""};
    struct words *words = words_new();
    assert_int_equal(words_each(words, text, strlen(text), hear, &heard), count);
    assert_string_equal(heard.text, terms);
    words_free(words);
}

static void stems_and_stop_words(void **state)
{
    (void)state;
    expect("How do I avoid bank conflicts?", " avoid bank conflict", 6);
    expect("coalescing, coalesced; COALESCE", " coalesc coalesc coalesc", 3);
    expect("", "", 0);
    expect("a b 7 ...", "", 3);
}

static void identifiers(void **state)
{
    (void)state;
    expect("cp.async.bulk.tensor",
           "=cp.async.bulk.tensor<cp.async<cp.async.bulk-cp-async-bulk-tensor", 1);
    expect("cuda::barrier", "=cuda::barrier-cuda-barrier", 1);
    expect("cuda::std::atomic_ref", "=cuda::std::atomic_ref<atomic_ref-cuda-std-atom-ref", 1);
    expect("__shfl_xor_sync", "=shfl_xor_sync-shfl-xor-sync", 1);
    expect("_mm512_fmadd_ps", "=mm512_fmadd_ps-mm512-fmadd-ps", 1);
    expect("cudaMemcpyAsync", "=cudamemcpyasync-cuda-memcpi-async", 1);
    expect("CUtensorMap", "=cutensormap-utensor-map", 1);
    expect("TMADescriptor", "=tmadescriptor-tma-descriptor", 1);
    expect("__launch_bounds__(256)", "=launch_bounds-launch-bound 256", 2);
    expect("float4 h100 sm_90a", " float4 h100=sm_90a-sm-90a", 3);
}

/* A sentence's dots join nothing, and what is no UTF-8 is passed over. */
static void odd_bytes(void **state)
{
    (void)state;
    expect("tile. Block", " tile block", 2);
    expect("tile\xff\xfe"
           "block \xc3\x28",
           " tile block", 2);
    expect("M\xc3\xbcller \xe2\x80\x9cquoted\xe2\x80\x9d", " m\xc3\xbcller quot", 2);
    char long_one[3000];
    memset(long_one, 'x', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = '\0';
    expect(long_one, "", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stems_and_stop_words),
        cmocka_unit_test(identifiers),
        cmocka_unit_test(odd_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
