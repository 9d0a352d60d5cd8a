const BY_NODE: Readonly<Record<string, string | undefined>> = { x64: 'amd64', arm64: 'arm64' };

/** Name of an architecture in images and releases of Go programs, by Node's; undefined: one that Coppice has no name of. */
export const goArchitecture = (nodeArchitecture: string = process.arch): string | undefined =>
  BY_NODE[nodeArchitecture];

/** Architecture of this machine, as images name it. */
export const imageArchitecture = (): string => goArchitecture() ?? process.arch;
