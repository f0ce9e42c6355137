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
    says: 'The price of all requests of a session under a table of prices, answers left out: what begins as the request before costs the price of reading the cache, the rest that of writing it, everything after an idle time beyond the lifetime that of writing. Relative to `raw` on the same sessions; the interval holds 95 of 100 resamplings of the sessions.',
    cannot:
      'It compares requests for the recorded answers: a model that misses something makes further calls. Marks of a cache, least lengths and rounding to blocks are left out.',
  },
  {
    name: 'worst',
    says: 'The highest relative cost of a single session. Above 1 the policy costs that session more than doing nothing.',
    cannot: 'It says nothing about sessions that nobody recorded.',
  },
  {
    name: 'mean, without the heaviest',
    says: 'The mean of the relative costs of the sessions, each counting the same; and the pooled cost without the session that costs most. The pooled cost itself weighs long sessions more.',
    cannot: 'Which weight is right for the sessions of somebody else.',
  },
  {
    name: 'lines',
    says: 'Of the needed lines the share that the request held. A needed line has at least 24 characters, stands in the words or arguments of an answer, stood in a result or a message of the user before, and in no answer before; line numbers, names of searched files and signs of patches around it are taken off.',
    cannot:
      'What a model uses without repeating a line is not seen, nor what it wrote itself and lost: policies that drop its own arguments look better for that.',
  },
  {
    name: 'calls',
    says: 'Of the calls whose answers needed lines the share whose requests held all of them. One missing line counts as much as twenty.',
    cannot: 'It is no solve rate: a model may do without a line, or go wrong with all of them.',
  },
  {
    name: 'hits',
    says: 'The share of all tokens that the cache had: those that begin as the request before, in calls that came within its lifetime. The bytes that begin equal, in time or not, are `same prefix`.',
    cannot: 'A provider may drop a cache early or keep it longer.',
  },
  {
    name: 'reasoning',
    says: 'The share of calls with all thinking of the running turn intact: every request of the turn began with the whole request before it. It is counted for all sessions as if every answer had a thinking block.',
    cannot: 'What a model loses with its thinking is not measured, nor the refusal that some models answer instead.',
  },
  {
    name: 'tokens',
    says: `The estimated tokens of all requests relative to \`raw\`; a token is 3.6 characters. "a call" and "peak" are the mean and the largest request.`,
    cannot:
      'The estimate is off by what the calibration shows, and system prompts and tools are mostly not in recordings: `cost with fixed part` adds them where the provider counted them.',
  },
  {
    name: 'one activate away',
    says: 'Needed lines that were not in the request, whose object the request named by an id. One call brings it back.',
    cannot: 'Whether a model would have made that call.',
  },
  {
    name: 'to be read again',
    says: 'Needed lines that were neither there nor named, in a file that had not changed since a result showed it. The model would have to find out that it needs the file.',
    cannot: 'Whether it would, and how many searches that takes.',
  },
  {
    name: 'lost',
    says: 'Needed lines in none of these places: outputs of commands, texts of files that changed, what a user said. No call brings them back for certain.',
    cannot: 'A command can be run again, with the same output or another.',
  },
  {
    name: 'repeats',
    says: 'Texts that answers needed and requests lacked, each once in a turn; `cost with repeats` adds for each a call over the same context, and its text to the rest of the turn.',
    cannot: 'One missing text may lead to no further call, or to many.',
  },
  {
    name: 'stale',
    says: 'Tokens of results in a request that show a file as it no longer is, on average. Changes are those that the recording lets one follow.',
    cannot: 'A result that the model itself has made old by an edit is counted too, though the edit stands beside it.',
  },
  {
    name: 'over window',
    says: 'Requests larger than the window of the configuration. No provider would have taken them, so the policy could not have been used there.',
    cannot: 'The windows of the recorded models are not known to the recordings.',
  },
  {
    name: 'stored',
    says: 'Bytes that a policy wrote for each call, to be able to show later what it sent. Only ours write any.',
    cannot: 'Compaction of the database, and what it keeps of files, calls and messages anyway.',
  },
  {
    name: 'exact',
    says: 'The share of calls before the first one of their session that missed something, or that came after a compaction by the recorded program: up to there the recorded answers are what the model would have said, as far as needed lines tell. Behind it figures are bounds: of cost from below, of what is kept from above.',
    cannot: 'Another order of the same texts may lead to another answer as well.',
  },
];
