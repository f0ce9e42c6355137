import { readFile, rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ExportTarget, Written } from '../../cli/contract.js';
import { draftOf } from '../../process/drafts.js';
import { systemCode } from '../../process/system-error.js';
import { takeFreeName } from '../../process/take-free-name.js';
import { TextMask } from '../../redaction/text-mask.js';
import { CodedError } from '../../values/coded-error.js';
import { messageOf } from '../../values/thrown.js';
import { SessionMoment } from '../projection/session-moment.js';
import { trajectoryOf } from './trajectory.js';

/** Thrown if a trajectory cannot be written. */
class TrajectoryError extends CodedError<'file-exists' | 'unusable-file'> {
  override readonly name = 'TrajectoryError';
}

/**
 * Writes a new private file completely or not at all.
 * @throws {TrajectoryError}
 */
async function writeWhole(path: string, text: string): Promise<void> {
  const draft = await draftOf(path);
  try {
    await writeFile(draft, text, { mode: 0o600, flag: 'wx', flush: true });
    await takeFreeName(draft, path);
  } catch (cause) {
    if (systemCode(cause) === 'EEXIST')
      throw new TrajectoryError('file-exists', `${path} exists and is not overwritten: name another file`, { cause });
    throw new TrajectoryError('unusable-file', `${path} cannot be written: ${messageOf(cause)}`, { cause });
  } finally {
    await rm(draft, { force: true });
  }
}

/**
 * Writes a session at a moment as one ATIF 1.7 trajectory, without the content that redaction rules
 * hide.
 * @throws {TrajectoryError} `file-exists`, `unusable-file`
 * @throws errors of reading a session at a moment
 */
export async function exportTrajectory(target: ExportTarget): Promise<Written> {
  const { timeline: asked, session, when, folder, home, hiddenTexts } = target;
  const timeline = await asked.of(session);
  const [{ projection }, steps, hidden, manifest] = await Promise.all([
    SessionMoment.read(timeline, session, when),
    timeline.steps(session),
    hiddenTexts(timeline, session),
    readFile(new URL('package.json', home), 'utf8'),
  ]);
  const { masked, maskedValue } =
    hidden.inForce === 0
      ? { masked: (text: string) => text, maskedValue: <T>(value: T) => value }
      : new TextMask({ texts: hidden.texts, words: hidden.words, patterns: [] });
  const made = trajectoryOf({
    projection,
    steps: steps.slice(0, projection.seq),
    version: (JSON.parse(manifest) as { readonly version: string }).version,
    mask: { masked, maskedValue, hides: (id) => hidden.objects.has(id) },
  });
  const path = resolve(folder);
  const text = `${JSON.stringify(made, undefined, 2)}\n`;
  await writeWhole(path, text);
  const count = (made.steps as readonly unknown[]).length;
  const bytes = Buffer.byteLength(text);
  return {
    lines: [`session ${session}, turn ${projection.turn}: ${count} steps in ${path} (${bytes} bytes)`],
    json: { format: 'atif', session, turn: projection.turn, step: projection.seq, steps: count, file: path, bytes },
  };
}
