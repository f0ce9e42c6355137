import { type Colours, escapedLine, grouped } from '../../cli/output.js';
import { answerReview, type ReviewFlags, shownTime } from '../../cli/review/answer.js';
import type { CountTexts } from '../../history/rebuild/tokenizer.js';
import { askPrefixes, type PrefixDiff } from '../ask/prefix-diff.js';
import type { CacheVerdict, MissVerdict, ProviderVerdicts, ThinkingVerdict } from '../ask/provider-verdicts.js';
import type { RequestSide } from '../ask/request-reader.js';
import { type NameOf, namesFor } from './object-names.js';

function sideText({ turn, step, epoch, layout }: RequestSide): string {
  return `turn ${turn}, step ${step} (${epoch === undefined ? layout : `epoch ${epoch.number}`})`;
}

const VERDICTS: Readonly<Record<CacheVerdict['verdict'], string>> = {
  agrees: 'as expected',
  'read-less': 'LESS than expected: the cache was cold, or something unrecorded changed',
  'read-more': 'more than expected',
};

const MISSES: Readonly<Record<MissVerdict['verdict'], string>> = {
  agrees: 'as expected',
  differs: 'NOT this difference: something unrecorded changed, such as a tool or the model',
  unknown: 'the provider compared nothing',
};

const DROPS: Readonly<Record<ThinkingVerdict['verdict'], string>> = {
  agrees: 'as expected',
  'dropped-none': 'fewer than expected: these answers may have had no thinking',
  'dropped-more': 'MORE than expected: something unrecorded before them changed',
};

/** Describes each of the provider's statements in one line. */
function providerLines({ cache, miss, thinking, fewer }: ProviderVerdicts & Pick<PrefixDiff, 'fewer'>) {
  const lines: string[] = [];
  if (fewer > 0)
    lines.push(`  provider counted ${grouped(fewer)} tokens fewer than before; which text left is not recorded`);
  if (cache !== undefined)
    lines.push(
      `  provider read ${grouped(cache.read)} tokens from its cache, ${grouped(cache.expected)} expected: ` +
        `${VERDICTS[cache.verdict]}`,
    );
  if (miss !== undefined) {
    const tokens = miss.tokens === undefined ? '' : ` (${grouped(miss.tokens)} tokens)`;
    lines.push(
      `  provider says ${escapedLine(miss.reason)}${tokens}, ${miss.expected ?? 'no change'} expected: ` +
        `${MISSES[miss.verdict]}`,
    );
  }
  if (thinking !== undefined)
    lines.push(
      `  provider left out ${grouped(thinking.dropped)} thinking blocks, ${grouped(thinking.lost)} answers expected: ` +
        `${DROPS[thinking.verdict]}`,
    );
  return lines;
}

function differenceLine({ difference, shared, from }: PrefixDiff, nameOf: NameOf): string {
  if (difference === undefined) return `begins with all ${grouped(from.size.bytes)} bytes of the previous request`;
  const { byte, section, line, object, step } = difference;
  const what = section === 'list' ? "the harness's own messages" : `section ${section}`;
  const where = [
    what,
    `line ${line}`,
    ...(step === undefined ? [] : [`step ${step}`]),
    ...(object === undefined ? [] : [nameOf(object)]),
  ];
  return (
    `differs at byte ${grouped(byte)} of ${grouped(from.size.bytes)} (after ${grouped(shared.tokens)} ` +
    `tokens): ${escapedLine(where.join(', '))}`
  );
}

function causeLine({ cause }: PrefixDiff, colours: Colours): readonly string[] {
  if (cause === undefined) return [];
  const { kind, why, epoch, version } = cause;
  const price =
    epoch?.price === undefined
      ? ''
      : `; ${grouped(epoch.price.written)} tokens written again, ${grouped(epoch.price.savedPerCall)} saved a call`;
  const which =
    version === undefined
      ? ''
      : `: version ${version.number} of ${shownTime(version.validTime)}, transaction ${version.txId}`;
  return [`  ${colours.bold(`${kind}:`)} ${escapedLine(why)}${which}${price}`];
}

/** Compares two requests: where they diverge, the cause, the cost, and the provider's report. */
export function prefixLines(diff: PrefixDiff, nameOf: NameOf, colours: Colours): readonly string[] {
  const { from, to, isPrefix, written, again, answers } = diff;
  const differs = differenceLine(diff, nameOf);
  const thought =
    answers === undefined || (answers.lost === 0 && answers.left === 0)
      ? []
      : [
          `  answers of the model: ${answers.kept} after an equal prefix, ${answers.lost} not, ${answers.left} ` +
            'removed with a closed turn',
        ];
  const unequal = [from, to].filter(({ matches }) => !matches).map(({ step }) => step);
  return [
    colours.yellow(`${sideText(from)} → ${sideText(to)}`) + colours.dim(` ${shownTime(to.at)}, ${to.delivered}`),
    `  ${isPrefix ? colours.green(differs) : differs}`,
    ...causeLine(diff, colours),
    `  written  ${grouped(written)} tokens${again === 0 ? '' : `, ${grouped(again)} of them again`}; the request ` +
      `has ${grouped(to.size.tokens)}`,
    ...thought,
    ...providerLines(diff),
    ...(unequal.length === 0
      ? []
      : [colours.red(`  NOT the context handed out at step ${unequal.join(' and ')}: palimpsest verify shows why`)]),
    '',
  ];
}

/** Runs `diff <session> [A..B] --prefix`. */
export async function prefixAction(
  { name, range }: { readonly name: string; readonly range: string | undefined },
  flags: ReviewFlags,
  count: CountTexts,
): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const found = await askPrefixes(timeline, { name, range, limit: flags.limit, count });
    const { compared, tokenizer, isCut } = found;
    const nameOf = await namesFor(
      timeline,
      compared.flatMap(({ difference }) => difference?.object ?? []),
    );
    return {
      lines: (colours) =>
        compared.length === 0
          ? ['fewer than two contexts were handed out, so there is nothing to compare']
          : compared.flatMap((one) => prefixLines(one, nameOf, colours)),
      holds:
        `tokens by ${tokenizer}; what is not recorded (tools, reasoning, the notation of the provider) is ` +
        'not counted',
      json: async () => (await import('../http/review-answers.js')).prefixAnswer(found),
      notes: isCut ? [`the newest ${compared.length} comparisons; there are more (--limit)`] : [],
    };
  });
}
