import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Argument, Command, Option } from 'commander';
import { maskFlags } from '../../bundle/mask-flags.js';
import type { Contract, ProgramParts, ShowFlags } from '../../cli/contract.js';
import { collect, dataFlag, wholeBetween } from '../../cli/flags.js';
import { reportFailure } from '../../cli/output.js';

/** `palimpsest review`: serves the review page for the data folder, read-only. */
function reviewCommand(program: ProgramParts): Command {
  return new Command('review')
    .description('show sessions in the browser: the context of each model call and why it changed')
    .addArgument(new Argument('[session]', 'session id or prefix (default: the list of all sessions)'))
    .addOption(dataFlag())
    .addOption(
      new Option(
        '--mount <mapping>',
        'show paths as an agent in a sandbox saw them: AGENT=CANONICAL[,FILESYSTEM-ID]; repeatable',
      ).argParser(collect),
    )
    .addOption(new Option('--port <number>', 'port; 0 picks a free one').argParser(wholeBetween(0, 65_535)).default(0))
    .addOption(new Option('--no-open', 'print the address without opening it'))
    .addOption(
      new Option('--log-level <level>', 'log level on stderr')
        .choices(['silent', 'error', 'warn', 'info', 'debug'])
        .default('warn'),
    )
    .action((session: string | undefined, flags: ShowFlags) =>
      reportFailure({}, async () => (await import('./serve-page.js')).servePage(session, flags, program)),
    );
}

/**
 * The review page: `palimpsest review`, the page of a server, and pages in files with one session.
 */
export const PAGE: Contract = {
  http: async ({ home }) => {
    const [
      { dataFolder },
      { ReviewPage },
      { SessionEvents },
      { PAGE_QUESTIONS },
      { PAGE_ANSWERS },
      { shareQuestions },
    ] = await Promise.all([
      import('../../host/environment.js'),
      import('./review-page.js'),
      import('./session-events.js'),
      import('./page-questions.js'),
      import('./page-schemas.js'),
      import('./share-questions.js'),
    ]);
    return {
      answers: PAGE_ANSWERS,
      questions: { ...PAGE_QUESTIONS, ...shareQuestions(fileURLToPath(new URL('dist/page/', home))) },
      events: {
        followSession: {
          path: '/v1/sessions/{id}/events',
          summary:
            'Changes of a session after a transaction, as server-sent events: `change`, with the transaction as id ' +
            'and a StripChange as data',
          open: (log) => new SessionEvents(log),
        },
      },
      page: (token, dataDir) => {
        const named = resolve(dataDir);
        // Ignores this server's PALIMPSEST_DATA, because the reader's shell may have another value.
        const isUsual = named === dataFolder({ ...process.env, PALIMPSEST_DATA: undefined });
        return new ReviewPage(fileURLToPath(new URL('dist/web/', home)), token, isUsual ? undefined : named);
      },
    };
  },
  commands: (program) => [reviewCommand(program)],
  show: async (session, flags, program) => (await import('./serve-page.js')).servePage(session, flags, program),
  exports: {
    html: {
      about: 'one page for the browser with the session in it; needs no server (docs/review-page.md)',
      fileFlag: () =>
        new Option(
          '--html <file>',
          'write the review page with the session in it; same as --format html and this file',
        ),
      options: maskFlags,
      load: async () => (await import('./write-page.js')).exportPage,
    },
  },
};
