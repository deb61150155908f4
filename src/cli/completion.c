/* bash completion, from the tables of commands and options: subcommands, options, the values of
 * those that have a choice, and the names that only the program knows: problems, runs. */
#include "base/buf.h"
#include "cli/help.h"
#include "cli/options/command.h"

#include <ctype.h>
#include <string.h>

/* The words of "[runs|problems|candidates RUN]" that are written as they stand: no placeholders. */
static void put_verbs(const char *arguments, struct buf *out)
{
    for (const char *at = arguments; *at;) {
        size_t length = strcspn(at, "|[] ");
        bool word = length > 0;
        for (size_t i = 0; i < length; i++)
            word = word && islower((unsigned char)at[i]);
        if (word)
            buf_addf(out, "%.*s ", (int)length, at);
        at += length + (at[length] != '\0');
    }
}

/* What a placeholder stands for is asked of the program while completing. */
static void put_names(const struct command *command, FILE *out)
{
    const char *arguments = command->arguments;
    bool problem = strstr(arguments, "PROBLEM") || strcmp(command->name, "problem") == 0;
    bool run = strstr(arguments, "RUN") || strncmp(arguments, "ID", 2) == 0;
    if (problem)
        fprintf(out, "$(twagent list problems 2>/dev/null | cut -d' ' -f1) ");
    if (run)
        fprintf(out, "$(twagent list 2>/dev/null | sed -n 's/^\\(r[0-9]*\\) .*/\\1/p') ");
}

static bool takes_files(const struct command *command)
{
    static const char *const placeholders[] = {"DIR", "FILE", "PATH", "PROBLEM"};
    bool takes = false;
    for (size_t i = 0; i < sizeof placeholders / sizeof placeholders[0]; i++)
        takes = takes || strstr(command->arguments, placeholders[i]);
    return takes;
}

static void put_commands(FILE *out)
{
    BUF_LOCAL(text, 1 << 20);
    for (size_t i = 0; i < command_count; i++) {
        buf_reset(&text);
        options_completion(&settings_table, commands[i].bit, &text);
        fprintf(out, "    %s)\n        options=\"%s --help\"\n", commands[i].name, buf_text(&text));
        buf_reset(&text);
        put_verbs(commands[i].arguments, &text);
        if (text.length > 0)
            fprintf(out, "        if [ \"$COMP_CWORD\" -eq 2 ]; then words=\"%s\" files=; else\n",
                    buf_text(&text));
        fprintf(out, "        files=%s words=\"", takes_files(&commands[i]) ? "-f" : "");
        put_names(&commands[i], out);
        fprintf(out, "\"%s ;;\n", text.length > 0 ? "\n        fi" : "");
    }
}

/* After an option that takes a value: its choices, files for a path, nothing for a number. */
static void put_values(FILE *out)
{
    for (size_t i = 0; i < settings_table.count; i++) {
        const struct option *option = &settings_table.options[i];
        const char *metavar = option->metavar ? option->metavar : "";
        if (option->type == OPTION_BOOL)
            continue;
        bool path = strcmp(metavar, "FILE") == 0 || strcmp(metavar, "DIR") == 0 ||
                    strcmp(metavar, "PATH") == 0;
        if (option->letter)
            fprintf(out, "    -%c | --%s)", option->letter, option->name);
        else
            fprintf(out, "    --%s)", option->name);
        if (option->choices) {
            fprintf(out, " words=\"");
            for (const char *at = option->choices; *at; at++)
                fputc(*at == '|' ? ' ' : *at, out);
            fprintf(out, "\" files= value=1 ;;\n");
        } else {
            fprintf(out, " words= files=%s value=1 ;;\n", path ? "-f" : "");
        }
    }
}

void help_completion(FILE *out)
{
    fprintf(out, "# bash completion for twagent\n_twagent()\n{\n"
                 "    local word=${COMP_WORDS[COMP_CWORD]} options= words= files=-f value=\n"
                 "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                 "        options=\"--help --version --man --completion\" files=\n"
                 "        words=\"");
    for (size_t i = 0; i < command_count; i++)
        fprintf(out, "%s ", commands[i].name);
    fprintf(out, "help\"\n    else case ${COMP_WORDS[1]} in\n");
    put_commands(out);
    fprintf(out, "    esac\n    case ${COMP_WORDS[COMP_CWORD-1]} in\n");
    put_values(out);
    fprintf(out, "    esac\n    fi\n"
                 "    case $value$word in\n"
                 "    -*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\") ;;\n"
                 "    *) mapfile -t COMPREPLY < <(compgen $files -W \"$words\" -- \"$word\") ;;\n"
                 "    esac\n}\ncomplete -F _twagent twagent\n");
}
