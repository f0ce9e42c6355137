import type { LineRange } from '../../history/rebuild/call-names.js';
import type { OtherLines } from '../../history/rebuild/changed-outside.js';
import type { FileAuthor } from '../../objects/file-author.js';

/** Describes the lines that show a change from outside. */
export function otherLinesWhy({ from, to, isDoubted }: OtherLines): string {
  const were =
    from === to ? `Line ${from} had another text when it was` : `Lines ${from}–${to} had another text when they were`;
  const doubt = isDoubted ? ' Commands of unknown effect ran between.' : '';
  return `${were} read before, and no recorded call names the file as changed between.${doubt}`;
}

/** A call by its name, with its turn. */
interface MadeCall {
  readonly step: { readonly turn: number };
  readonly call: { readonly name: string };
}

/** The facts about the first text of a file, or its first mention. */
interface FirstText {
  /** Whether its text is not known. */
  readonly isStub: boolean;
  /** Whether an earlier call had mentioned it. */
  readonly wasKnown: boolean;
  /** The lines that the call read; undefined for all of them. */
  readonly lines: LineRange | undefined;
  /** Lines that an earlier read showed with another text. */
  readonly other: OtherLines | undefined;
}

/** Describes how the first text of a file, or its first mention, was recorded. */
export function firstWhy({ step, call }: MadeCall, { isStub, wasKnown, lines, other }: FirstText): string {
  const where = `in turn ${step.turn}`;
  if (isStub)
    return lines === undefined
      ? `${call.name} found it ${where}.`
      : `${call.name} read a part of it ${where}, and the whole text was not recorded.`;
  if (other !== undefined) return `${otherLinesWhy(other)} ${call.name} read all of it ${where}.`;
  return wasKnown
    ? `${call.name} read all of it for the first time ${where}. Nothing shows whether it had changed before.`
    : `It was there when ${call.name} first read it ${where}.`;
}

/** The calls of a shell, or calls whose text was not recorded, that led to a version. */
interface LedTo {
  readonly back: number | undefined;
  readonly putBack: { readonly run: MadeCall; readonly command: string } | undefined;
  readonly shell: MadeCall | undefined;
  readonly earlier: MadeCall | undefined;
}

/** Names the command that led to a version, or the call whose text was not recorded. */
export function shellWhy({ back, putBack, shell, earlier }: LedTo): string | undefined {
  if (putBack !== undefined) {
    const { name } = putBack.run.call;
    const by = name.includes(putBack.command) ? name : `${putBack.command}, in ${name},`;
    return `Back to version ${back} by ${by} in turn ${putBack.run.step.turn}.`;
  }
  if (shell !== undefined) return `It changed while ${shell.call.name} ran in turn ${shell.step.turn}.`;
  return earlier === undefined
    ? undefined
    : `${earlier.call.name} changed it in turn ${earlier.step.turn}. Its text was recorded later, when it was read.`;
}

/** Describes the evidence that git or an editor made a version. */
export function outsideWhy(author: FileAuthor): string {
  return author.kind === 'git'
    ? `git ${author.action} moved HEAD to ${author.commit.slice(0, 10)} then, and the file equals that commit's.`
    : `${author.editor} saved it: its temporary files appeared beside the file at that time.`;
}
