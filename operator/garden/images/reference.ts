/** Parts of an image's full name. */
interface Reference {
  /** Registry's host, e.g. `registry.k8s.io`. */
  registry: string;
  /** e.g. `coredns/coredns`. */
  repository: string;
  tag: string;
}

/** Parses `host/repository:tag`. Throws when a part is missing: no default registry or tag applies. */
export function parseReference(ref: string): Reference {
  const match = /^([a-z0-9.-]+(?::\d+)?)\/([a-z0-9._/-]+):([\w][\w.-]{0,127})$/.exec(ref);
  if (!match || !/[.:]|^localhost$/.test(match[1]!)) throw new Error(`${ref} is not of the form host/repository:tag`);
  return { registry: match[1]!, repository: match[2]!, tag: match[3]! };
}

const DOCKER_HUB = 'docker.io';

/** Kubernetes' expansion of a short name: `nginx` is `docker.io/library/nginx:latest`. Throws for an invalid name. */
export function fullReference(name: string): string {
  const slash = name.indexOf('/');
  const first = name.slice(0, Math.max(slash, 0));
  const hasRegistry = slash > 0 && (/[.:]/.test(first) || first === 'localhost');
  const registry = hasRegistry ? first.replace(/^(?:index|registry-1)\.docker\.io$/, DOCKER_HUB) : DOCKER_HUB;
  const rest = hasRegistry ? name.slice(slash + 1) : name;
  const repository = registry === DOCKER_HUB && !rest.includes('/') ? `library/${rest}` : rest;
  const ref = `${registry}/${repository}${/:[^/]*$/.test(rest) ? '' : ':latest'}`;
  if (parseReference(ref).repository.split('/').includes('')) throw new Error(`"${name}" is not the name of an image`);
  return ref;
}
