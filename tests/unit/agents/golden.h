/* Texts that tests hold byte for byte: golden/NAME.txt. */
#pragma once

#include "check.h"

#include "base/buf.h"
#include "base/file.h"

/* Frees `text`. Where it differs, what it is now stands in the build's folder. */
static void must_equal_file(const char *name, struct buf *text)
{
    struct buf golden;
    struct err err;
    char path[512], ours[512];
    snprintf(path, sizeof path, TEST_SOURCE_DIR "/tests/unit/agents/golden/%s.txt", name);
    snprintf(ours, sizeof ours, TEST_BINARY_DIR "/golden-%s.txt", name);
    buf_init(&golden, text->max);
    bool same = file_read(path, &golden, &err) == 0 && golden.length == text->length &&
                memcmp(buf_text(&golden), buf_text(text), golden.length) == 0;
    if (!same) {
        if (file_write(ours, buf_text(text), text->length, &err) != 0)
            fail_msg("%s", err.message);
        fail_msg("%s changed: diff -u %s %s, and copy it over if it was meant to", name, path,
                 ours);
    }
    assert_int_equal(text->dropped, 0);
    buf_free(&golden);
    buf_free(text);
}
