/** The parts of an image's full name. */
export interface Reference {
  /** Registry's host, e.g. `registry.k8s.io`. */
  registry: string;
  /** e.g. `coredns/coredns`. */
  repository: string;
  tag: string;
}

/** Takes `host/repository:tag` apart. Throws when a part is missing: we never rely on a default registry or tag. */
export function parseReference(ref: string): Reference {
  const match = /^([a-z0-9.-]+(?::\d+)?)\/([a-z0-9._/-]+):([\w][\w.-]{0,127})$/.exec(ref);
  if (!match || !/[.:]|^localhost$/.test(match[1]!)) throw new Error(`${ref} is not of the form host/repository:tag`);
  return { registry: match[1]!, repository: match[2]!, tag: match[3]! };
}
