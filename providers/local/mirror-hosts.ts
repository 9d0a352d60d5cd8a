/** Where containerd asks for images first. */
export interface ImageMirror {
  /** `https://host:port`; `http://` where no authority is known. */
  readonly url: string;
  /** PEM of the authority that its certificate is from. Absent: of the system's. */
  readonly ca?: string;
}

/**
 * What containerd reads as `hosts.toml` for every registry, in its folder `_default`. What the mirror does not have is asked of the registry
 * itself. The authority is in the same file, because machines that exist get new contents of their files, and no new files.
 * @param path of this file, as containerd sees it
 */
export function mirrorHosts({ url, ca }: ImageMirror, path: string): string {
  const host = `[host.${JSON.stringify(url)}]\n  capabilities = ["pull", "resolve"]\n`;
  // containerd takes the certificates out of whatever text the file has, and ignores this key.
  return ca ? `authority = '''\n${ca.trim()}\n'''\n\n${host}  ca = ${JSON.stringify(path)}\n` : host;
}
