#include "cli/help.h"

#include "base/buf.h"
#include "cli/options/command.h"
#include "cli/options/variables.h"

#include <stdbool.h>
#include <string.h>

static const char *const EXIT_CODES =
    "exit codes: 0 a verified win (eval: a kernel), 1 none, 2 usage, 3 environment,\n"
    "            4 stopped by a budget or a person without one, or answers are awaited\n";

enum { ARGUMENTS_WIDTH = 15 }; /* so that 80 columns hold a command's line */

void help_program(FILE *out)
{
    fprintf(out, "twagent: search for the fastest kernel of a simple definition, and prove it\n\n"
                 "usage: twagent COMMAND [OPTIONS] [ARGUMENTS]\n\n");
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = &commands[i];
        if (strlen(c->arguments) <= ARGUMENTS_WIDTH)
            fprintf(out, "  %-8s %-*s %s\n", c->name, ARGUMENTS_WIDTH, c->arguments, c->summary);
        else
            fprintf(out, "  %-8s %s\n  %-8s %-*s %s\n", c->name, c->arguments, "", ARGUMENTS_WIDTH,
                    "", c->summary);
    }
    fprintf(out,
            "\n  twagent COMMAND --help   its options\n"
            "  twagent --version | --man | --completion\n\n"
            "Kernels run on this machine's cores, or with --backend cuda on its NVIDIA GPUs\n"
            "(--devices 0,1 or all): run, eval, problem check and doctor take both.\n\n%s",
            EXIT_CODES);
}

static void put_paragraph(const char *text, FILE *out)
{
    enum { WIDTH = 80 };
    for (size_t column = 0; *text;) {
        size_t length = strcspn(text, " ");
        bool first = column == 0;
        if (!first && column + 1 + length > WIDTH) {
            fputc('\n', out);
            column = 0;
            first = true;
        }
        fprintf(out, "%s%.*s", first ? "" : " ", (int)length, text);
        column += length + !first;
        text += length + (text[length] == ' ');
    }
    fputs("\n\n", out);
}

void help_command(const struct command *command, FILE *out)
{
    BUF_LOCAL(text, 1 << 20);
    options_help(&settings_table, command->bit, &text);
    fprintf(out, "twagent %s: %s\n\nusage: twagent %s [OPTIONS] %s\n\n", command->name,
            command->summary, command->name, command->arguments);
    if (command->details)
        put_paragraph(command->details, out);
    fprintf(out, "%s\n%s", buf_text(&text), EXIT_CODES);
}

void help_man(FILE *out)
{
    BUF_LOCAL(text, 4 << 20);
    fprintf(out,
            ".TH TWAGENT 1 \"\" \"twagent %s\" \"User Commands\"\n"
            ".SH NAME\ntwagent \\- search for the fastest kernel and prove it\n"
            ".SH SYNOPSIS\n.B twagent\n.I COMMAND\n[OPTIONS] [ARGUMENTS]\n"
            ".SH DESCRIPTION\nTurns a slow, obviously right definition of an operation into the "
            "fastest kernel it can find for this machine, proves that the kernel is right, and "
            "says how sure it is that it is faster.\n.SH COMMANDS\n",
            TWAGENT_VERSION);
    for (size_t i = 0; i < command_count; i++) {
        buf_reset(&text);
        options_man(&settings_table, commands[i].bit, &text);
        fprintf(out, ".SS \"%s %s\"\n%s.\n%s\n%s", commands[i].name, commands[i].arguments,
                commands[i].summary, commands[i].details ? commands[i].details : "",
                buf_text(&text));
    }
    fprintf(out, ".SH ENVIRONMENT\nBesides the variables that options name:\n");
    for (size_t i = 0; i < variable_count; i++)
        fprintf(out, ".TP\n.B %s\n%s.\n", variables[i].name, variables[i].help);
    fprintf(out, ".SH EXIT STATUS\n0: a verified win (eval: a kernel). 1: none. 2: usage. 3: "
                 "environment. 4: stopped by a budget or a person without a win, or answers of a "
                 "mailbox are awaited.\n");
}
