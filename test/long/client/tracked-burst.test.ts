import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { effort } from '../../support/effort.js';
import { historyOf } from '../../support/object-history.js';
import { TrackedProject } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

let project: TrackedProject;
beforeEach(async () => {
  project = await TrackedProject.create();
});
afterEach(() => project.close());

test('a burst of hundreds of changes is recorded completely in few transactions', async () => {
  const count = effort(300, 1_000);
  const names = Array.from({ length: count }, (_, i) => `f${i}.ts`);
  await Promise.all(names.map((name) => writeFile(project.file(name), name)));
  const client = await project.open();
  const ids = await project.read(client, await client.openSession(), ...names);
  await Promise.all(names.map((name) => writeFile(project.file(name), `${name} changed`)));
  await until(
    async () =>
      [...(await (await client.store.now()).getMany(ids)).values()].filter(({ version }) =>
        version.content?.endsWith(' changed'),
      ),
    (changed) => changed.length === count,
  );
  const transactions = new Set(
    (
      await Promise.all(ids.map(async (id) => (await historyOf(await client.store.now(), id)).map(({ txId }) => txId)))
    ).flat(),
  );
  expect(transactions.size).toBeLessThan(60);
});
