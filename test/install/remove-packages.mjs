import { rmSync } from 'node:fs';

/** Removes the packages that the run made. */
export default function removePackages() {
  const made = process.env.PALIMPSEST_PACKAGES_MADE;
  if (made) rmSync(made, { recursive: true });
}
