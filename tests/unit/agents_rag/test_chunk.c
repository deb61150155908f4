#include "agents/retrieve/rag/read/chunk.h"
#include "agents/retrieve/rag/read/read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct passage_list list;

static void cut(enum document_kind kind, const char *text)
{
    passage_list_free(&list);
    arena_free(list.arena);
    list = (struct passage_list){.arena = arena_new()};
    chunk_document(kind, "file.h", text, strlen(text), &list);
}

static void expect(size_t at, const char *path, const char *title, const char *text, uint32_t line)
{
    assert_true(at < list.count);
    assert_string_equal(list.items[at].path, path);
    assert_string_equal(list.items[at].title, title);
    assert_string_equal(list.items[at].text, text);
    assert_int_equal(list.items[at].line, line);
}

static const struct passage *titled(const char *title)
{
    for (size_t i = 0; i < list.count; i++)
        if (strcmp(list.items[i].title, title) == 0)
            return &list.items[i];
    fail_msg("no passage is called \"%s\"", title);
    abort();
}

static void markdown_follows_headings(void **state)
{
    (void)state;
    cut(DOCUMENT_MARKDOWN, "---\ntitle: x\n---\n# Guide\n\nIntro.\n\nPart\n----\nOne\ntwo.\n\n"
                           "### Deep #\nText.\n## Other\nEnd.\n");
    assert_int_equal(list.count, 4);
    expect(0, "", "Guide", "Intro.", 6);
    expect(1, "Guide", "Part", "One\ntwo.", 10);
    expect(2, "Guide > Part", "Deep", "Text.", 14);
    expect(3, "Guide", "Other", "End.", 16);
}

static void markdown_keeps_code_whole(void **state)
{
    (void)state;
    struct buf text, code;
    buf_init(&text, 1 << 20);
    buf_init(&code, 1 << 20);
    for (int i = 0; i < 400; i++)
        buf_addf(&code, "%s\tx[%d] = # not a heading %d;", i ? "\n" : "", i, i);
    buf_addf(&text, "# T\nBefore.\n\n```c\n%s\n```\nAfter.\n", buf_text(&code));
    cut(DOCUMENT_MARKDOWN, buf_text(&text));
    size_t holders = 0;
    for (size_t i = 0; i < list.count; i++) {
        const struct passage *passage = &list.items[i];
        if (strstr(passage->text, buf_text(&code)) == NULL)
            continue;
        holders++;
        assert_int_equal(passage->span_count, 1);
        assert_int_equal(passage->spans[0].end - passage->spans[0].start, code.length);
        assert_memory_equal(passage->text + passage->spans[0].start, buf_text(&code), code.length);
    }
    assert_int_equal(holders, 1);
    buf_free(&text);
    buf_free(&code);
}

/* Fences of other lengths and marks close nothing; one that is never closed ends with the file. */
static void markdown_fences(void **state)
{
    (void)state;
    cut(DOCUMENT_MARKDOWN, "````\n```\n# x\n````\n\n~~~ c\n```\n~~~\n\n    indented\n\n    more\n");
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].span_count, 3);
    cut(DOCUMENT_MARKDOWN, "# A\n```\nint x;\n# no heading");
    assert_int_equal(list.count, 1);
    assert_non_null(strstr(list.items[0].text, "# no heading"));
}

static void long_prose_is_cut_at_sentences(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_add_text(&text, "# T\n");
    for (int i = 0; i < 300; i++)
        buf_addf(&text, "Sentence number %d is here. ", i);
    cut(DOCUMENT_MARKDOWN, buf_text(&text));
    assert_true(list.count > 3);
    for (size_t i = 0; i < list.count; i++) {
        assert_true(list.items[i].length <= PASSAGE_MOST);
        assert_int_equal(strncmp(list.items[i].text, "Sentence number", 15), 0);
    }
    buf_free(&text);
}

static void html_and_rst(void **state)
{
    (void)state;
    cut(DOCUMENT_HTML,
        "<html><head><title>no</title></head><body><script>if (a<b) x();</script><!-- <h1> -->"
        "<h1>Shared&nbsp;memory</h1><p>Banks &lt; 32 &#x2019;s\n<b>wide</b></p><h2>Pad</h2>"
        "<pre>a &amp;&amp; b\n  c</pre><p>1 < 2</p></body></html>");
    assert_int_equal(list.count, 2);
    expect(0, "", "Shared memory", "Banks < 32 \xe2\x80\x99s wide", 1);
    expect(1, "Shared memory", "Pad", "```\na && b\n  c\n```\n\n1 < 2", 2);
    cut(DOCUMENT_RST,
        "=====\nTitle\n=====\n\nIntro::\n\n    code here\n\n    more\n\nText.\n\nSub\n---\n"
        ".. code-block:: c\n   :linenos:\n\n   int x;\n\nEnd.\n");
    assert_int_equal(list.count, 2);
    expect(0, "", "Title", "Intro::\n\n```\n    code here\n\n    more\n```\n\nText.", 5);
    expect(1, "Title", "Sub", "```\n   int x;\n```\n\nEnd.", 18);
}

static const char *const header =
    "/* Copyright (c) somebody. All rights reserved. */\n"
    "#ifndef X_H\n#define X_H\n"
    "#include <stdint.h>\n"
    "/** \\defgroup MEM Memory Management\n * @{ */\n"
    "/**\n * \\brief Copies bytes.\n *\n * \\param n - how many\n */\n"
    "extern __host__ int CUDARTAPI copyBytes(void *to, const void *from, size_t n);\n"
    "/** @} */\n"
    "namespace cuda { namespace ptx {\n"
    "// Waits.\n// Twice.\n"
    "template <typename T>\n__device__ inline void wait_all(T *x) {\n  if (x) { x->wait(); }\n}\n"
    "} }\n"
    "#define ALPHA 1\n#define BETA(x) \\\n    ((x) + 1)\n"
    "/** Kinds. */\ntypedef enum kindEnum {\n  KIND_A = 0, /**< the first; */\n  KIND_B = 1\n} "
    "kind_t;\n"
    "/** A point. */\nstruct point {\n  int x; // not } here\n  char c = '}';\n};\n"
    "#endif\n";

static void source_by_declaration(void **state)
{
    (void)state;
    cut(DOCUMENT_SOURCE, header);
    const struct passage *copy = titled("copyBytes");
    assert_string_equal(copy->path, "file.h > Memory Management");
    assert_non_null(strstr(copy->text, "Copies bytes."));
    assert_non_null(strstr(copy->text, "CUDARTAPI copyBytes(void *to"));
    assert_null(strstr(copy->text, "brief"));
    assert_int_equal(copy->span_count, 1);
    assert_string_equal(titled("wait_all")->path, "file.h > cuda::ptx");
    assert_non_null(strstr(titled("wait_all")->text, "Waits.\nTwice."));
    assert_non_null(strstr(titled("ALPHA")->text, "((x) + 1)"));
    assert_non_null(strstr(titled("kind_t")->text, "KIND_B"));
    assert_non_null(strstr(titled("point")->text, "char c = '}';"));
    for (size_t i = 0; i < list.count; i++)
        assert_null(strstr(list.items[i].text, "Copyright"));
}

/* Branches of an #if that each open a brace do not swallow what comes after. */
static void source_with_uneven_braces(void **state)
{
    (void)state;
    cut(DOCUMENT_SOURCE, "#if A\nstruct a {\n#else\nstruct b {\n#endif\n  int x;\n};\n"
                         "int after(void);\n}}}\n/** Last. */\nint last(void);\n");
    assert_non_null(strstr(titled("a")->text, "int after(void)"));
    assert_non_null(strstr(titled("last")->text, "int last(void)"));
}

static void cleaning(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 10);
    read_clean("\xef\xbb\xbf"
               "a\r\nb\x01\xff\xc0\xaf\xed\xa0\x80\xe2\x82\xac\xf0\x9f",
               19, &out);
    assert_string_equal(buf_text(&out), "a\nb \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                                        "\xef\xbf\xbd\xef\xbf\xbd\xe2\x82\xac\xef\xbf\xbd"
                                        "\xef\xbf\xbd");
    buf_free(&out);
}

static int end(void **state)
{
    (void)state;
    passage_list_free(&list);
    arena_free(list.arena);
    return 0;
}

static void enumerators_are_passages(void **state)
{
    (void)state;
    cut(DOCUMENT_SOURCE,
        "/** What went wrong. */\ntypedef enum error_enum {\n  /** All well. */\n  OK = 0,\n"
        "  /** The address is not aligned,\n   * by four. */\n  ERR_MISALIGNED = 7,\n"
        "  ERR_LATE = F(1, 2), /**< It took too long. */\n  ERR_LAST = 999 + "
        "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "000000000000000000000000000000000000000000000000\n} error_t;\n"
        "enum plain { A, B };\nint after;\n");
    const struct passage *one = titled("ERR_MISALIGNED");
    assert_non_null(strstr(one->text, "by four."));
    assert_null(strstr(one->text, "All well"));
    assert_non_null(strstr(one->path, "error_t"));
    assert_int_equal(one->line, 5);
    assert_non_null(strstr(titled("ERR_LATE")->text, "too long"));
    assert_non_null(strstr(titled("ERR_LATE")->text, "F(1, 2)"));
    assert_non_null(titled("ERR_LAST"));
    assert_non_null(strstr(titled("error_t")->text, "What went wrong."));
    assert_non_null(strstr(titled("plain")->text, "int after"));
    cut(DOCUMENT_SOURCE, "enum { /* cut"); /* what ends early ends all the same */
    cut(DOCUMENT_SOURCE, "enum e { A /* x */, B = ',' // y\n }");
}

static void scripts_and_notebooks(void **state)
{
    (void)state;
    cut(DOCUMENT_SCRIPT,
        "import triton\n\n@triton.jit\ndef add_kernel(x):\n    pass\n\n\nclass Model:\n"
        "    def forward(self):\n        return 1\n");
    assert_non_null(strstr(titled("add_kernel")->text, "@triton.jit\ndef"));
    assert_int_equal(titled("add_kernel")->line, 3);
    assert_non_null(strstr(titled("forward")->path, "Model"));
    cut(DOCUMENT_NOTEBOOK,
        "{\"cells\": [{\"cell_type\": \"markdown\", \"source\": [\"# Warps\\n\", \"Text.\"]},"
        "{\"cell_type\": \"code\", \"source\": \"def f():\\n  pass\"}]}");
    assert_non_null(strstr(titled("Warps")->text, "Text."));
    assert_non_null(strstr(titled("f")->text, "pass"));
    cut(DOCUMENT_NOTEBOOK, "{\"cells\": 7");
    assert_int_equal(list.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markdown_follows_headings),
        cmocka_unit_test(markdown_keeps_code_whole),
        cmocka_unit_test(markdown_fences),
        cmocka_unit_test(long_prose_is_cut_at_sentences),
        cmocka_unit_test(html_and_rst),
        cmocka_unit_test(source_by_declaration),
        cmocka_unit_test(source_with_uneven_braces),
        cmocka_unit_test(cleaning),
        cmocka_unit_test(enumerators_are_passages),
        cmocka_unit_test(scripts_and_notebooks),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
