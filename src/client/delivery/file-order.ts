import type { ObjectId } from '../../objects/ids.js';
import { fileObjectId } from '../session/file-access.js';
import type { SessionWrite } from './session-write.js';

/**
 * The order of writes that hold readings of the same file: one after another, in whichever lanes they are (decision C11). Each decides against what the
 * one before it left, so that a change that a session made and a tracker saw is one version (decision C12). Mentions need no order: they are
 * put only where nothing is.
 */
export class FileOrder {
  readonly #last = new Map<ObjectId, Promise<void>>();

  /** Starts a delivery at once and gives it what to wait for before it decides: whatever was started before with one of its files, however it ends. */
  enter<T>({ files }: SessionWrite, deliver: (turn: Promise<unknown>) => Promise<T>): Promise<T> {
    const ids = files.flatMap((file) => (file.kind === 'read' ? [fileObjectId(file.source)] : []));
    const delivered = deliver(Promise.all(ids.flatMap((id) => this.#last.get(id) ?? [])));
    const ended = delivered.then(
      () => undefined,
      () => undefined,
    );
    for (const id of ids) this.#last.set(id, ended);
    void ended.then(() => {
      for (const id of ids) if (this.#last.get(id) === ended) this.#last.delete(id);
    });
    return delivered;
  }
}
