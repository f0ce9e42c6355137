import type { ContractExport, ExportTarget } from './contract.js';

/** Returns the last step of the requested moment; undefined for the end of the session. */
export async function lastStep({ timeline, session, when }: ExportTarget): Promise<number | undefined> {
  const { stepAt } = await import('../client/session/fork-at.js');
  const isPlaced = Object.values(when).some((clock) => clock !== undefined);
  return isPlaced ? stepAt(timeline, session, { when, holder: async () => undefined }) : undefined;
}

/** The formats of Palimpsest's own. */
export const OWN_FORMATS: Readonly<Record<string, ContractExport>> = {
  bundle: {
    about: 'one file with the whole session, for palimpsest import into any database (docs/bundle.md)',
    masks: true,
    load: async () => {
      const { exportBundle } = await import('../bundle/export-bundle.js');
      return async (asked) => {
        const { timeline, session, folder } = asked;
        const { file, turn, step, manifest } = await exportBundle(timeline, {
          session,
          file: folder,
          upto: await lastStep(asked),
          mask: asked.mask,
        });
        const { documents, texts, transactions, redacted } = manifest;
        return {
          lines: [
            `session ${session}, turn ${turn}, step ${step}: ${documents} versions and parts of ${transactions} ` +
              `transactions, ${texts} texts in ${file}`,
            ...(redacted === undefined
              ? []
              : [
                  `redacted: something in ${redacted.versions} versions, ${redacted.steps} steps and ` +
                    `${redacted.records} records, ${redacted.names} names; ${redacted.contexts} contexts ` +
                    'rendered anew from the remaining text',
                ]),
          ],
          json: { format: 'bundle', session, turn, step, file, manifest },
        };
      };
    },
  },
};
