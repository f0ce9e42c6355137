import { fromStepPart, messagePartHash, stepId } from '../../store/step-part.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { StepLine, VersionLine } from './index-entries.js';

/** A candidate of a search, as the index describes it. */
export type CandidateLine = StepLine | VersionLine;

/** Returns the id of the document with a candidate's text. Undefined if it is not known. */
function documentId(line: CandidateLine): string | undefined {
  if (line.hash !== undefined) return undefined;
  if (!('object' in line)) return stepId(line.session, line.seq);
  return line.inline === undefined ? undefined : line.object;
}

/** Returns the text in a document if it is the text of the candidate. */
function textIn(document: StoredDocument | undefined, line: CandidateLine): string | undefined {
  if (document === undefined) return undefined;
  if (!('object' in line))
    return messagePartHash(document) === undefined ? fromStepPart(document).message?.text : undefined;
  const { content, content_hash } = document;
  return typeof content === 'string' && content_hash === line.inline ? content : undefined;
}

/**
 * Returns the texts of candidates, in order, without reading their versions. Undefined for a text
 * that only its version has, such as the earlier text of a short file. If another candidate has an
 * equal text, such as the call that read the file, its text is used.
 */
export async function candidateTexts(
  present: StoreSnapshot,
  lines: readonly CandidateLine[],
): Promise<readonly (string | undefined)[]> {
  const ids = lines.map(documentId);
  const [texts, documents] = await Promise.all([
    present.texts([...new Set(lines.flatMap(({ hash }) => hash ?? []))]),
    present.documents.newest([...new Set(ids.filter((id) => id !== undefined))]),
  ]);
  const found = lines.map((line, i) =>
    line.hash === undefined ? textIn(documents.get(ids[i] ?? ''), line) : texts.get(line.hash),
  );
  const equal = new Map(
    lines.map(({ inline }, i) => [inline, found[i]] as const).filter(([, text]) => text !== undefined),
  );
  return lines.map(({ inline }, i) => found[i] ?? (inline === undefined ? undefined : equal.get(inline)));
}
