/** A measure's meaning and limits, as the report prints them. */
export interface Measure {
  readonly name: string;
  readonly says: string;
  readonly cannot: string;
}

/** The measures of a report, in the order of its columns. */
export const MEASURES: readonly Measure[] = [
  {
    name: 'cost',
    says:
      'The price of a session under a table of prices: system prompt and tools, the guide and tools that a policy ' +
      'adds, requests, summaries, answers, and texts that were put back. The beginning shared with the previous ' +
      'request costs a cache read, the rest a cache write. After an idle time beyond the lifetime all of it costs a ' +
      'write. The interval holds 95 of 100 resamplings of the sessions.',
    cannot:
      'It compares requests for the recorded answers. Cache marks, minimum lengths and rounding to blocks are left ' +
      'out.',
  },
  {
    name: 'cost where all fits',
    says:
      'Relative to sending everything, over the calls of each session up to the first whose request would not fit ' +
      'the window of the configuration. Nothing else is called raw.',
    cannot: 'The windows of the recorded models are not known to the recordings.',
  },
  {
    name: 'cost of what was sent',
    says:
      'Relative to the requests that the recorded program really sent over all calls: with its own compactions, ' +
      'clearings and replaced results, and the calls that wrote its summaries.',
    cannot: 'Compactions that a recording does not name.',
  },
  {
    name: 'worst, first 60, without the heaviest',
    says:
      'The highest cost of a session relative to what its program sent; the same over the first 60 calls; and the ' +
      'pooled cost without the session of the greatest weight, if that is over a fifth.',
    cannot: 'Sessions that were not recorded.',
  },
  {
    name: 'lines',
    says:
      'The share of the needed lines that the request contained. A needed line has at least 24 characters and occurs ' +
      'in the words or arguments of an answer. It occurred before in a result, a user message or the arguments of an ' +
      'earlier call. Line numbers, names of searched files and patch signs around it are removed.',
    cannot:
      'Text that a model uses without repeating a line is not counted. A line that it repeats by habit, such as a ' +
      'command, counts as needed.',
  },
  {
    name: 'calls',
    says:
      'The share of the calls with needed lines whose requests contained all of them. One missing line counts as ' +
      'much as twenty. `calls, inputs` ignores missing lines that stood only in the words and arguments of the model.',
    cannot: 'It is not a solve rate: a model may do without a line, or go wrong with all of them.',
  },
  {
    name: 'hits',
    says:
      'The share of all tokens that the cache had: the beginning shared with the previous request, in calls within ' +
      'its lifetime. `same prefix` counts equal beginnings at any time.',
    cannot: 'A provider may drop a cache early or keep it longer.',
  },
  {
    name: 'reasoning',
    says:
      'The share of calls with all thinking of the running turn intact: every request of the turn began with the ' +
      'whole previous request. Every session counts as if each answer had a thinking block.',
    cannot: 'The loss of a model without its thinking, and the refusals of some models.',
  },
  {
    name: 'one activate away',
    says:
      'Needed lines that are not in the request, but that one call of activate would return. The request must name ' +
      "their text: by its call with arguments, or by a line with the file's path or the beginning of the call.",
    cannot: 'Whether a model would have made that call.',
  },
  {
    name: 'to be read again',
    says:
      'Needed lines that the request names in the same way, in a file that had not changed since a result showed ' +
      'it.',
    cannot: 'Whether a model would read it, and how many searches that takes.',
  },
  {
    name: 'lost',
    says: 'Needed lines in none of these places. Nothing in the request leads back to them.',
    cannot: 'A command can be run again, with the same output or another.',
  },
  {
    name: 'put back',
    says:
      'Texts that answers needed and requests lacked, each once a turn. For each, the cost includes one more call ' +
      'over the same context with an answer of 80 tokens, and the text for the rest of the turn.',
    cannot: 'One missing text may lead to no further call, or to many. Lost texts are charged as if they were found.',
  },
  {
    name: 'stale',
    says:
      'Average tokens of results in a request that show an outdated state of a file. Counts the changes that the ' +
      'recording shows.',
    cannot:
      "A result that the model's own edit made outdated is counted too, although the request also shows the edit.",
  },
  {
    name: 'over window',
    says:
      'Requests larger than the window of the configuration. A provider would have refused them, so the policy ' +
      'could not have been used there.',
    cannot: 'The windows of the recorded models are not known to the recordings.',
  },
  {
    name: 'stored',
    says: 'Bytes that a policy wrote for each call, to be able to show later what it sent. Only ours write any.',
    cannot: 'Compaction of the database, and what it keeps of files, calls and messages anyway.',
  },
  {
    name: 'exact',
    says:
      'The share of calls before the first one that missed something or followed a compaction by the recorded ' +
      'program. Up to there the model would have given the recorded answers, as far as needed lines show. After it ' +
      'figures are bounds: lower for cost, upper for what is kept.',
    cannot: 'Another order of the same texts may lead to another answer as well.',
  },
];
