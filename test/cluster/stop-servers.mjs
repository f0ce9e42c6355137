import { rm } from 'node:fs/promises';

/** Removes the jars of the test servers. */
export default async function stopServers() {
  for (const dir of JSON.parse(process.env.PALIMPSEST_TEST_SERVERS ?? '[]'))
    await rm(dir, { recursive: true, force: true });
}
