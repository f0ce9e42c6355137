import type { CacheVerdict, PrefixDiff } from '../../history/ask/prefix-diff.js';
import type { RequestSide } from '../../history/ask/request-reader.js';
import { type Colours, escapedLine } from '../output.js';
import { answerReview, type NameOf, namesFor, type ReviewFlags, shownTime, wireAnswers } from './answer.js';

const count = (n: number): string => n.toLocaleString('en-US');

function sideText({ turn, step, epoch, layout }: RequestSide): string {
  return `turn ${turn}, step ${step} (${epoch === undefined ? layout : `epoch ${epoch.number}`})`;
}

const VERDICTS: Readonly<Record<CacheVerdict['verdict'], string>> = {
  agrees: 'as expected',
  'read-less': 'LESS than expected: its cache was cold, or something that is not recorded changed',
  'read-more': 'more than expected',
};

function differenceLine({ difference, shared, from }: PrefixDiff, nameOf: NameOf): string {
  if (difference === undefined) return `begins with all ${count(from.size.bytes)} bytes of the one before`;
  const { byte, section, line, object, step } = difference;
  const what = section === 'list' ? "the harness's own messages" : `section ${section}`;
  const where = [what, `line ${line}`, ...(step === undefined ? [] : [`step ${step}`]), ...(object === undefined ? [] : [nameOf(object)])];
  return `differs at byte ${count(byte)} of ${count(from.size.bytes)} (after ${count(shared.tokens)} tokens): ${escapedLine(where.join(', '))}`;
}

function causeLine({ cause }: PrefixDiff, colours: Colours): readonly string[] {
  if (cause === undefined) return [];
  const { kind, why, epoch, version } = cause;
  const price =
    epoch?.price === undefined
      ? ''
      : `; ${count(epoch.price.written)} tokens written again, ${count(epoch.price.savedPerCall)} saved a call`;
  const which = version === undefined ? '' : `: version ${version.number} of ${shownTime(version.validTime)}, transaction ${version.txId}`;
  return [`  ${colours.bold(`${kind}:`)} ${escapedLine(why)}${which}${price}`];
}

/** Two requests: where they part, why, what it costs, and what the provider said. */
export function prefixLines(diff: PrefixDiff, nameOf: NameOf, colours: Colours): readonly string[] {
  const { from, to, isPrefix, written, again, answers, cache } = diff;
  const differs = differenceLine(diff, nameOf);
  const thought =
    answers === undefined || (answers.lost === 0 && answers.left === 0)
      ? []
      : [`  answers of the model: ${answers.kept} behind an equal beginning, ${answers.lost} not, ${answers.left} left with a closed turn`];
  const unequal = [from, to].filter(({ matches }) => !matches).map(({ step }) => step);
  return [
    colours.yellow(`${sideText(from)} → ${sideText(to)}`) + colours.dim(` ${shownTime(to.at)}, ${to.delivered}`),
    `  ${isPrefix ? colours.green(differs) : differs}`,
    ...causeLine(diff, colours),
    `  written  ${count(written)} tokens${again === 0 ? '' : `, ${count(again)} of them again`}; the request has ${count(to.size.tokens)}`,
    ...thought,
    ...(cache === undefined
      ? []
      : [`  provider read ${count(cache.read)} tokens from its cache, ${count(cache.expected)} expected: ${VERDICTS[cache.verdict]}`]),
    ...(unequal.length === 0
      ? []
      : [colours.red(`  NOT what was handed out at step ${unequal.join(' and ')}: palimpsest verify shows why`)]),
    '',
  ];
}

/** `diff <session> [A..B] --prefix` */
export async function prefixAction(name: string, range: string | undefined, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const { askPrefixes } = await import('../../history/ask/prefix-diff.js');
    const found = await askPrefixes(timeline, { name, range, limit: flags.limit });
    const { compared, tokenizer, isCut } = found;
    const nameOf = await namesFor(
      timeline,
      compared.flatMap(({ difference }) => difference?.object ?? []),
    );
    return {
      lines: (colours) =>
        compared.length === 0
          ? ['fewer than two contexts were handed out: there is nothing to compare']
          : compared.flatMap((one) => prefixLines(one, nameOf, colours)),
      holds: `tokens by ${tokenizer}; what is not recorded (tools, reasoning, the notation of the provider) is not counted`,
      json: async () => (await wireAnswers()).prefixAnswer(found),
      notes: isCut ? [`the newest ${compared.length} comparisons; there are more (--limit)`] : [],
    };
  });
}
