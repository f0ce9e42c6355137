import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { readProvenance } from '../../../../src/lab/experiments/listed-counts.js';
import { withTemporaryFolder } from '../../../support/temporary-folder.js';

test('takes only counts from the list of a corpus, so that no report contains its words', async () => {
  await withTemporaryFolder(async (folder) => {
    const rows = [
      'file\tbytes\tmessages\ttool_calls\treads\tnotes',
      'codex/a.jsonl\t10\t3\t2\t1\tby someone@example.org',
    ];
    await writeFile(join(folder, 'PROVENANCE.tsv'), `${rows.join('\n')}\n`);
    expect([...(await readProvenance(folder))]).toEqual([
      ['codex/a.jsonl', { bytes: 10, messages: 3, calls: 2, reads: 1 }],
    ]);
    expect([...(await readProvenance(join(folder, 'none')))]).toEqual([]);
  });
});
