import { stat } from 'node:fs/promises';
import type { Contract, ExportTarget, ImportSource, Written } from '../cli/contract.js';
import { withImportStore } from '../cli/import-target.js';
import { stepAt } from '../client/session/fork-at.js';
import { readMoved, readRenamed } from '../host/settings.js';
import { sessionId } from '../objects/ids.js';
import { defined } from '../values/defined.js';
import { BundleError } from './bundle-error.js';
import { exportBundle } from './export-bundle.js';
import { exportMask } from './export-mask.js';
import { finishImport, importBundle } from './import-bundle.js';

/** Returns the last step at the requested moment. Undefined if no moment was requested. */
export async function lastStep({ timeline, session, when }: ExportTarget): Promise<number | undefined> {
  const isPlaced = Object.values(when).some((clock) => clock !== undefined);
  return isPlaced ? stepAt(timeline, session, { when, holder: async () => undefined }) : undefined;
}

/** Writes a session as a bundle. */
export async function exportBundleFile(target: ExportTarget): Promise<Written> {
  const { timeline, session, folder } = target;
  const mask = await exportMask(target);
  const upto = await lastStep(target);
  const { file, turn, step, manifest } = await exportBundle(timeline, { session, file: folder, upto, mask });
  const { documents, texts, transactions, redacted } = manifest;
  return {
    lines: [
      `session ${session}, turn ${turn}, step ${step}: ${documents} documents from ${transactions} ` +
        `transactions, ${texts} texts in ${file}`,
      ...(redacted === undefined
        ? []
        : [
            `redacted: text in ${redacted.versions} versions, ${redacted.steps} steps and ` +
              `${redacted.records} records, and ${redacted.names} names; ${redacted.contexts} contexts ` +
              'were rendered again without it',
          ]),
    ],
    json: { format: 'bundle', session, turn, step, file, manifest },
  };
}

/**
 * Rejects a folder that no import format recognises. Runs before a database is opened.
 * @throws {BundleError} `unusable-file`; the message names the formats that can be imported
 */
async function requireFile(path: string, contracts: readonly Contract[]): Promise<void> {
  const stats = await stat(path).catch(() => undefined);
  if (stats === undefined || stats.isFile()) return;
  const importable = new Set(contracts.flatMap(({ imports = {} }) => Object.keys(imports)));
  const formats = contracts.flatMap(({ exports = {} }) => Object.entries(exports));
  const written = formats.flatMap(([name, { writesFolder }]) => (writesFolder === true ? [name] : []));
  const both = written.filter((name) => importable.has(name));
  const others = written.filter((name) => !importable.has(name));
  throw new BundleError(
    'unusable-file',
    `${path} is not a file. Import a bundle (one file)` +
      (both.length === 0 ? '' : `, or a folder written by export --format ${both.join(' or ')}`) +
      others.map((name) => `. Palimpsest cannot import what --format ${name} wrote`).join(''),
  );
}

const texts = (value: unknown): readonly string[] | undefined => value as readonly string[] | undefined;

/** Imports a bundle into the database of the data folder. */
export async function importBundleFile(
  { file, flags }: ImportSource,
  contracts: readonly Contract[],
): Promise<Written> {
  await requireFile(file, contracts);
  const folders = readMoved(texts(flags.map));
  const filesystems = readRenamed(texts(flags.filesystem));
  return withImportStore(flags, async ({ store, clientDir, mask, onProgress }) => {
    const { session, turn, step, sessions, isNew, isRemapped, bundle } = await importBundle(store, file, {
      clientDir,
      folders,
      filesystems,
      onProgress,
      ...defined({ mask }),
    });
    const { documents, texts, transactions } = bundle.manifest;
    const held =
      `session ${session}, turn ${turn}, step ${step}: ${documents} documents from ` +
      `${transactions} transactions, ${texts} texts`;
    return {
      lines: [
        isNew ? held : `${held}: already complete${isRemapped ? ', and its files now use the given folders' : ''}`,
        ...(isNew ? [`check it with: palimpsest verify ${session}`] : []),
      ],
      json: { format: 'bundle', session, turn, step, sessions, imported: isNew, manifest: bundle.manifest },
    };
  });
}

/** Finishes an interrupted import. */
export async function finishBundle(name: string, flags: ImportSource['flags']): Promise<Written> {
  return withImportStore(flags, async ({ store, clientDir, onProgress }) => {
    const finished = await finishImport(store, sessionId(name), { clientDir, onProgress });
    const { session, turn, step, transactions } = finished;
    return {
      lines: [
        `session ${session}, turn ${turn}, step ${step}: all ${transactions} transactions are present`,
        `check it with: palimpsest verify ${session}`,
      ],
      json: { format: 'bundle', ...finished, imported: true },
    };
  });
}
