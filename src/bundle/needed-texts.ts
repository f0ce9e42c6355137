import type { AssemblyProof } from '../objects/assembly-proof.js';
import type { Sha256 } from '../objects/ids.js';
import { keptArgsHash } from '../objects/kept-args.js';
import { recordTexts } from '../store/context-records.js';
import { contentPartHash, isHead, marksOf } from '../store/head.js';
import { messagePartHash } from '../store/step-part.js';
import type { StoredDocument } from '../xtdb/documents.js';

/** A text that a document refers to by hash. */
export interface NeededText {
  readonly hash: Sha256;
  /**
   * False if the text may be missing: the whole text of a document that holds only its beginning
   * and end.
   */
  readonly isRequired: boolean;
  /** Whether it is the text of a message. */
  readonly isMessage: boolean;
}

const text = (hash: unknown, isRequired: boolean, isMessage = false): readonly NeededText[] =>
  typeof hash === 'string' ? [{ hash: hash as Sha256, isRequired, isMessage }] : [];

/** Returns the hash of a request's body that a gateway forwarded. */
function sentBody({ body }: StoredDocument): readonly NeededText[] {
  const { sent, sha256 } = body as unknown as AssemblyProof;
  return sent === undefined ? [] : text(sha256, true);
}

/** Returns the texts that a stored document refers to by hash. */
export function neededTexts(document: StoredDocument): readonly NeededText[] {
  if (document.type === 'step') return text(messagePartHash(document), true, true);
  if (document.type === 'assembly') return sentBody(document);
  if (document.type === 'record') return recordTexts(document).flatMap((hash) => text(hash, true));
  if (!isHead(document)) return [];
  const { content_hash: content, file_hash: file, args } = document;
  return [
    ...text(contentPartHash(document), true),
    ...text(marksOf(document).whole, false),
    ...(content === null || file === content ? [] : text(file, false)),
    ...text(keptArgsHash(args), true),
  ];
}
