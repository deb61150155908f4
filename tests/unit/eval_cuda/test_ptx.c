/* Which variables of a PTX module its code names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "eval/cuda/compile/ptx.h"

#include <string.h>

#define HEAD  ".version 8.8\n.target sm_90a\n.address_size 64\n"
#define ENTRY ".visible .entry k(.param .u64 k_param_0)\n"

static const struct {
    const char *text;
    bool uses;
} rows[] = {
    {HEAD ENTRY "{ ret; }", false},
    {HEAD ".global .u32 v;\n" ENTRY "{ ld.global.u32 %r1, [w]; cvta.to.global.u64 %rd, %rd; }",
     false},
    {HEAD ".global .align 4 .u32 v;\n" ENTRY "{ ld.global.u32 %r1, [v]; }", true},
    {HEAD ".visible .global .align 4 .b8 v[16] = {1, 2, 3};\n" ENTRY "{ mov.u64 %r1, v+4; }", true},
    {HEAD ".const .align 4 .b8 v[16];\n" ENTRY "{ mov.u64 %r1, v; }", true},
    {HEAD ".global .attribute(.managed) .align 4 .u32 v;\n" ENTRY "{ mov.u64 %r1, v; }", true},
    {HEAD ".global .u32 a, b = 3, c;\n" ENTRY "{ mov.u64 %r1, b; }", true},
    {HEAD ".global .u32 a = 1, b;\n" ENTRY "{ mov.u64 %r1, b; }", true},
    {HEAD ".global .u64 a = generic(b), c[2] = {b, 0};\n" ENTRY "{ mov.u64 %r1, b; }", false},
    {HEAD ".global .u32 v;\n" ENTRY "{ // v\n /* v */ .pragma \"v\"; mov.u32 vv, %v; }", false},
    {HEAD ".global .u32 v;\n.func f()\n{ { st.global.u32 [v], 1; } }\n" ENTRY "{ ret; }", true},
    {HEAD ENTRY "{ .reg .b32 %r; .global .u32 v; }", true},
    {HEAD ENTRY "{\n.const .u32 v; }", true},
    {HEAD ".global .texref t;\n" ENTRY "{ tex.2d.v4.f32.f32 {a}, [t, {b}]; }", true},
    {HEAD ".global .u32 v;\n.section .debug_str\n{\n.b8 1,2\n}\n" ENTRY "{ ret; }", false},
    {HEAD ".global .u32 v = 3", true}, /* no end */
    {HEAD ENTRY "{ ret; ", true},
    {HEAD ENTRY "{ ret; } /* ", false},
    {"", false},
};

static void test_rows(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].text);
        char *text = mem_alloc(length + 1); /* a sanitizer sees who reads on */
        memcpy(text, rows[i].text, length);
        if (ptx_uses_variables(text, length) != rows[i].uses)
            fail_msg("%zu: %s", i, rows[i].text);
        mem_free(text);
    }
}

static void test_cut_short(void **unused)
{
    const char *text = rows[4].text;
    (void)unused;
    for (size_t length = 0; length <= strlen(text); length++) {
        char *part = mem_alloc(length > 0 ? length : 1);
        memcpy(part, text, length);
        (void)ptx_uses_variables(part, length);
        mem_free(part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_cut_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
