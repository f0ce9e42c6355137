import type { ObjectId, Sha256 } from '../objects/ids.js';
import type { ContentType } from '../objects/object-type.js';

/** What is known of a file's text: only mentioned, read as text, read but no text (decision C2), confirmed deleted (decision C3). */
export type FileState = 'stub' | 'indexed' | 'not-text' | 'deleted';

interface MetadataByType {
  readonly file: {
    /** The path as the agent sees it [§5.3]. */
    readonly displayPath: string;
    readonly fileType: string;
    /** UTF-16 units of the stored text (decision A4). */
    readonly charCount: number;
    readonly state: FileState;
    readonly fileHash: Sha256 | null;
    /** Null: there is no content. */
    readonly contentHash: Sha256 | null;
  };
  readonly toolcall: {
    readonly tool: string;
    readonly status: 'ok' | 'fail';
    readonly contentHash: Sha256 | null;
    readonly charCount: number;
    readonly fileRefs: readonly ObjectId[];
    /** The call read one file from beginning to end (decision E4). */
    readonly wholeRead: boolean;
  };
}

/** What a pool line says of a content object and what assembly decides by [§4.1]; never its content. */
export type ObjectMetadata<T extends ContentType = ContentType> = {
  readonly [K in ContentType]: { readonly type: K; readonly id: ObjectId } & MetadataByType[K];
}[T];
