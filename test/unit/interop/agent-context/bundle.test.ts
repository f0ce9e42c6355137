import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { makeBundle } from '../../../../src/interop/agent-context/bundle.js';
import { objectsOf, PART_NAMES } from '../../../../src/interop/agent-context/bundle-parts.js';
import { bundleFindings, checkBundle } from '../../../../src/interop/agent-context/check-bundle.js';
import { statusFindings, withoutStatus } from '../../../../src/interop/agent-context/status-scan.js';
import { bundleFiles } from '../../../../src/interop/agent-context/write-bundle.js';
import type { ContextRecord } from '../../../../src/objects/context-record.js';
import type { Projection } from '../../../../src/projection/project-session.js';
import { happenings, projectionOf } from '../../projection/any-session.js';

const bundleOf = (projection: Projection, redactions: readonly ContextRecord<'event'>[] = []) =>
  makeBundle({ projection, scope: 'session', steps: [], records: redactions, delivered: [], redactions });

const redactionOf = ({ session }: Projection, subject: string): ContextRecord<'event'> => ({
  kind: 'event',
  owner: { session },
  turn: 1,
  seq: 1,
  at: 1,
  basis: null,
  body: { type: 'context.redaction.applied', subject, data: { redaction_state: 'nonsense', redaction_method: 7 } },
});

describe('bundles of any session', () => {
  test('are valid, closed and say nothing of how things went; the same session gives the same bytes; all entries but approvals are items', () => {
    fc.assert(
      fc.property(happenings, (all) => {
        const projection = projectionOf(all);
        const bundle = bundleOf(projection);
        expect(bundleFindings(bundle)).toEqual([]);
        expect([...bundleFiles(bundleOf(projectionOf(all)))]).toEqual([...bundleFiles(bundle)]);
        const entries = projection.entries.filter(({ kind }) => kind !== 'approval').map(({ id }) => id as string);
        expect(bundle.items.map(({ item_id }) => item_id).filter((id) => /^[a-z]\w*$/u.test(id) && id.length < 40)).toEqual(entries);
        expect(bundle.injections).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  test('have nothing of what was redacted, however badly the redaction is written', () => {
    const secret = 'the password is tangerine-9';
    const projection = projectionOf([
      { kind: 'user', text: secret },
      { kind: 'said', text: `You wrote: ${secret}` },
      { kind: 'calls', text: '', calls: [{ output: secret, args: { note: `${secret}!`, [secret]: 1 }, when: 'now' }] },
    ]);
    const first = projection.entries.find(({ kind }) => kind === 'user')?.id ?? '';
    const bundle = bundleOf(projection, [redactionOf(projection, first)]);
    expect(bundleFindings(bundle)).toEqual([]);
    expect(PART_NAMES.flatMap((part) => objectsOf(bundle, part)).filter((one) => JSON.stringify(one).includes('tangerine'))).toEqual([]);
    expect(bundle.items.find(({ item_id }) => item_id === first)).toMatchObject({ content_mode: 'opaque', redaction_state: 'unknown' });
    expect(JSON.stringify(bundleOf(projection))).toContain('tangerine');
  });

  test('with an open reference, a name given twice, a field of another shape or a status are refused by name', () => {
    const bundle = bundleOf(projectionOf([{ kind: 'user', text: 'Hello' }]));
    const [item] = bundle.items;
    if (item === undefined) throw new Error('no item');
    const said = (broken: Partial<typeof bundle>): readonly string[] => bundleFindings({ ...bundle, ...broken });
    expect(said({ items: bundle.items.slice(1) })[0]).toContain('names "system", which is not among the items');
    expect(said({ items: [item, ...bundle.items] })).toEqual(['there are two items of the name "system"']);
    const wrong = { ...item, visibility: [] as unknown as typeof item.visibility };
    expect(said({ items: [wrong, ...bundle.items.slice(1)] })[0]).toContain('context_item system is not valid at visibility');
    expect(() => checkBundle({ ...bundle, items: [] })).toThrow(expect.objectContaining({ code: 'invalid-bundle' }));
  });

  test('status in somebody else’s fields is dropped, what is quoted stays', () => {
    const foreign = { Status: 'x', data: { exit_code: 1, kept: 'yes', list: ['done', 'more'] }, title: 'done', how: 'Approved' };
    expect(withoutStatus(foreign)).toEqual({ data: { kept: 'yes', list: ['more'] }, title: 'done' });
    expect(statusFindings(foreign)).toEqual(['Status', 'data.exit_code', 'data.list.0', 'how']);
    expect(statusFindings({ status: 'open' }, ['status'])).toEqual([]);
  });
});
