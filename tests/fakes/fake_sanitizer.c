/* Stands where compute-sanitizer would: runs what it is told to supervise and says what
 * $FAKE_SANITIZER tells it to, in the tool's own form. Words of that variable, each TOOL:WHAT:
 *   racecheck:race memcheck:read initcheck:read synccheck:barrier   a finding
 *   TOOL:broken    it could not do its work        TOOL:silent   it ends without a summary
 *   TOOL:host      a complaint that is about no kernel
 *   TOOL:alone     under it no two streams may be busy at once
 *   TOOL:stubborn  it takes no other mark than its own      TOOL:late   it takes its time to start
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LATE_US = 200000 };

static const char *mark = "=========";

/* Every line of the tool's begins with the mark. */
static void say(const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        printf("%s%.*s\n", mark, (int)length, text);
        text += length + (text[length] == '\n');
    }
    fflush(stdout);
}

static int told(const char *tool, const char *what)
{
    char word[100];
    const char *text = getenv("FAKE_SANITIZER");
    snprintf(word, sizeof word, "%s:%s", tool, what);
    return text != NULL && strstr(text, word) != NULL;
}

static int say_finding(const char *tool)
{
    if (told(tool, "race"))
        say(" Error: Race reported between Write access at fake_relu+0xb0 in "
            "candidate.cu:4\n"
            "     and Read access at fake_relu+0xc0 in candidate.cu:9 [256 hazards]\n"
            " ");
    else if (told(tool, "read"))
        say(" Invalid __global__ read of size 4 bytes\n"
            "     at fake_relu+0x60 in candidate.cu:5\n"
            "     by thread (0,0,0) in block (7,0,0)\n"
            "     Access to 0x7f9b06800400 is out of bounds\n"
            " ");
    else if (told(tool, "barrier"))
        say(" Barrier error detected. Divergent thread(s) in block\n"
            "     at fake_relu+0x60 in candidate.cu:5\n"
            " ");
    else if (told(tool, "host"))
        say(" Host API memory access error at host access to 0x7f9b06800400 of size 64 bytes\n"
            "     Uninitialized access to 0x7f9b06800420 on access by cudaMemcpy source\n"
            " ");
    else
        return 0;
    return 1;
}

int main(int argc, char **argv)
{
    const char *tool = "memcheck";
    int at = 1, status;
    while (at + 1 < argc && argv[at][0] == '-') { /* every option that is used has a value */
        if (strcmp(argv[at], "--tool") == 0)
            tool = argv[at + 1];
        if (strcmp(argv[at], "--prefix") == 0)
            mark = argv[at + 1];
        at += 2;
    }
    if (told(tool, "stubborn"))
        mark = "=========";
    say(" COMPUTE-SANITIZER");
    if (told(tool, "broken")) {
        say(" Error: Device not supported. Please refer to the documentation");
        return 1;
    }
    if (told(tool, "late"))
        usleep(LATE_US);
    if (told(tool, "alone"))
        setenv("FAKE_CUDA_ALONE", "1", 1);
    pid_t child = fork();
    if (child == 0) {
        execv(argv[at], argv + at);
        _exit(127);
    }
    waitpid(child, &status, 0);
    int count = say_finding(tool);
    if (told(tool, "silent"))
        return 0;
    const char *plural = count == 1 ? "" : "s";
    if (strcmp(tool, "racecheck") == 0)
        printf("%s RACECHECK SUMMARY: %d hazard%s displayed (%d error%s, 0 warnings)\n", mark,
               count, plural, count, plural);
    else
        printf("%s ERROR SUMMARY: %d error%s\n", mark, count, plural);
    return 0;
}
