/** The amount of work of each case. */
export interface Sizes {
  /** Rounds for each of the three file sizes. */
  readonly reads: { readonly small: number; readonly middle: number; readonly large: number };
  readonly lists: number;
  readonly initializes: number;
  readonly coldStarts: number;
  /** Number of times an agent is killed while its node starts. */
  readonly left: number;
  readonly sessionCalls: number;
  /** Number of calls in one turn. */
  readonly calls: number;
  readonly callStretch: number;
  /** The compared turns, ascending. Each is the last of a series. */
  readonly turns: readonly [number, number, number];
  /** Number of turns of a series. */
  readonly stretch: number;
  readonly assemblies: number;
  /** Number of files of the session whose files another client writes. */
  readonly foreign: number;
  /** Number of files of the resumed session. */
  readonly resumed: number;
  readonly resumes: number;
  /** Numbers of watched files. */
  readonly watched: readonly number[];
  /**
   * Calls and rounds of the compared replay, and bytes of the recording for the memory measurement.
   */
  readonly replay: { readonly calls: number; readonly rounds: number; readonly bytes: number };
  /** Turns of the session with the queried history, rounds, and versions of an object. */
  readonly history: { readonly turns: number; readonly rounds: number; readonly versions: number };
  /** Objects in the index of one session, sessions of one database, and rounds of each query. */
  readonly large: { readonly known: number; readonly sessions: readonly number[]; readonly rounds: number };
  /** Sessions over HTTP and the calls of each, and files of one folder. */
  readonly load: { readonly sessions: number; readonly calls: number; readonly files: number };
  /** Messages of the lists that OpenCode passes, and measured model calls for each. */
  readonly loop: { readonly lists: readonly number[]; readonly calls: number };
  /**
   * For nodes over one log: rounds of calls, rounds of reads for each number of nodes, and the
   * milliseconds of a round. Also the transactions that a new node catches up with, and the calls
   * of the stored session.
   */
  readonly cluster: {
    readonly calls: number;
    readonly rounds: number;
    readonly readMs: number;
    readonly transactions: number;
    readonly sessionCalls: number;
  };
  /** Time limit of one case, milliseconds. */
  readonly limitMs: number;
}

/** The whole benchmark. It takes less than five minutes. */
export const FULL: Sizes = {
  reads: { small: 150, middle: 120, large: 20 },
  lists: 10,
  initializes: 10,
  coldStarts: 3,
  left: 8,
  sessionCalls: 500,
  calls: 10_000,
  callStretch: 1_000,
  turns: [20, 110, 1_000],
  stretch: 20,
  assemblies: 40,
  foreign: 10_000,
  resumed: 10_000,
  resumes: 5,
  watched: [2_000, 10_000],
  replay: { calls: 1_000, rounds: 3, bytes: 100_000_000 },
  history: { turns: 1_000, rounds: 60, versions: 10_000 },
  large: { known: 100_000, sessions: [2_000, 10_000], rounds: 5 },
  load: { sessions: 20, calls: 200, files: 100_000 },
  loop: { lists: [100, 500, 2_000], calls: 60 },
  cluster: { calls: 150, rounds: 3, readMs: 6_000, transactions: 100_000, sessionCalls: 500 },
  limitMs: 20_000,
};

/** A check that all cases run, in less than a minute. Its figures are not reliable. */
export const QUICK: Sizes = {
  reads: { small: 20, middle: 6, large: 3 },
  lists: 3,
  initializes: 3,
  coldStarts: 1,
  left: 2,
  sessionCalls: 50,
  calls: 200,
  callStretch: 100,
  turns: [10, 20, 60],
  stretch: 10,
  assemblies: 8,
  foreign: 1_000,
  resumed: 1_000,
  resumes: 3,
  watched: [2_000],
  replay: { calls: 100, rounds: 1, bytes: 10_000_000 },
  history: { turns: 60, rounds: 6, versions: 1_000 },
  large: { known: 10_000, sessions: [200], rounds: 2 },
  load: { sessions: 4, calls: 20, files: 5_000 },
  loop: { lists: [100, 500], calls: 8 },
  cluster: { calls: 10, rounds: 1, readMs: 2_000, transactions: 2_000, sessionCalls: 50 },
  limitMs: 2_500,
};
