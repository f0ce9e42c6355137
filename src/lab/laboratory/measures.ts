/** The meaning and limits of a measure. The report prints both. */
export interface Measure {
  readonly name: string;
  readonly says: string;
  readonly cannot: string;
}

/** The measures of a report in the order of its columns. */
export const MEASURES: readonly Measure[] = [
  {
    name: 'cost',
    says:
      'The price of all requests of a session under a table of prices, without answers. The beginning shared with ' +
      'the previous request costs a cache read, the rest a cache write. After an idle time beyond the lifetime all ' +
      'of it costs a write. Relative to `raw` on the same sessions; the interval holds 95 of 100 resamplings of ' +
      'the sessions.',
    cannot:
      'It compares requests for the recorded answers: a model that misses something makes further calls. Cache ' +
      'marks, minimum lengths and rounding to blocks are left out.',
  },
  {
    name: 'worst',
    says:
      'The highest relative cost of a single session. Above 1 the policy costs that session more than doing ' +
      'nothing.',
    cannot: 'Sessions that were not recorded.',
  },
  {
    name: 'mean, without the heaviest',
    says:
      'The mean of the relative costs of the sessions, each with the same weight; and the pooled cost without the ' +
      'most expensive session. The pooled cost itself weighs long sessions more.',
    cannot: 'The right weight for other sessions than these.',
  },
  {
    name: 'lines',
    says:
      'The share of the needed lines that the request contained. A needed line has at least 24 characters and ' +
      'occurs in the words or arguments of an answer. It occurred before in a result or a user message, but in no ' +
      'answer. Line numbers, names of searched files and patch signs around it are removed.',
    cannot:
      'Text that a model uses without repeating a line is not counted, nor its own lost writing. Policies that ' +
      'drop its arguments look better for that.',
  },
  {
    name: 'calls',
    says:
      'The share of the calls with needed lines whose requests contained all of them. One missing line counts as ' +
      'much as twenty.',
    cannot: 'It is no solve rate: a model may do without a line, or go wrong with all of them.',
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
    name: 'tokens',
    says:
      'The estimated tokens of all requests relative to `raw`; a token is 3.6 characters. "a call" and "peak" ' +
      'are the mean and the largest request.',
    cannot:
      'The estimate is off by the amount that the calibration shows. Recordings mostly lack system prompts and ' +
      'tools; `cost with fixed part` adds them if the provider counted them.',
  },
  {
    name: 'one activate away',
    says: 'Needed lines outside of the request, of objects whose ids the request named. One call brings each back.',
    cannot: 'Whether a model would have made that call.',
  },
  {
    name: 'to be read again',
    says:
      'Needed lines that were neither in the request nor named, in a file that had not changed since a result ' +
      'showed it. The model would have to find out that it needs the file.',
    cannot: 'Whether it would, and how many searches that takes.',
  },
  {
    name: 'lost',
    says:
      'Needed lines in none of these places: outputs of commands, texts of changed files, words of a user. No call ' +
      'brings them back for certain.',
    cannot: 'A command can be run again, with the same output or another.',
  },
  {
    name: 'repeats',
    says:
      'Texts that answers needed and requests lacked, each once a turn. For each, `cost with repeats` adds a call ' +
      'over the same context, and its text for the rest of the turn.',
    cannot: 'One missing text may lead to no further call, or to many.',
  },
  {
    name: 'stale',
    says:
      'Average tokens of results in a request that show an outdated state of a file. Counts the changes that the ' +
      'recording shows.',
    cannot: 'A result that the model itself has made old by an edit is counted too, though the edit stands beside it.',
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
