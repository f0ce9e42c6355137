/** Copies the jars that a `pom.xml` names into a separate folder, and returns their paths. */
export function copyJars(
  pom: string,
  options: { readonly name: string; readonly properties?: readonly string[] },
): Promise<{ readonly dir: string; readonly paths: readonly string[] }>;
