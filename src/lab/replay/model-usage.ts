import type { ModelUsage } from '../../objects/step.js';
import { defined } from '../../values/defined.js';
import type { EntryOf, RecordingFormat } from '../recordings/neutral-session.js';

/** Formats whose input tokens do not include cached tokens. */
export const INPUT_WITHOUT_CACHE: ReadonlySet<RecordingFormat> = new Set(['claude-code', 'pi', 'cline', 'opencode']);

/**
 * Converts recorded token counts to the form that a step stores. Undefined if there are no counts.
 */
export function modelUsage(
  { format, model }: { readonly format: RecordingFormat; readonly model?: string | undefined },
  usage: EntryOf<'message'>['usage'],
): ModelUsage | undefined {
  const count = (figure: number | undefined): number | undefined =>
    figure !== undefined && Number.isFinite(figure) && figure >= 0 ? Math.round(figure) : undefined;
  const [all, output, cacheRead, cacheWrite, hour = 0] = [
    usage?.input,
    usage?.output,
    usage?.cache_read,
    usage?.cache_write,
    usage?.cache_write_hour,
  ].map(count);
  const cached = INPUT_WITHOUT_CACHE.has(format) ? 0 : (cacheRead ?? 0) + (cacheWrite ?? 0);
  const found = defined({
    input: all === undefined ? undefined : Math.max(0, all - cached),
    output,
    cacheRead,
    cacheWrite,
    cacheWriteHour: Math.min(hour, cacheWrite ?? 0) || undefined,
  });
  if (Object.keys(found).length === 0) return undefined;
  const cost = usage?.cost;
  const isCost = cost !== undefined && Number.isFinite(cost) && cost >= 0;
  return { ...found, ...defined({ model: model?.toWellFormed(), cost: isCost ? cost : undefined }) };
}
