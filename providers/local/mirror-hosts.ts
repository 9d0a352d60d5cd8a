/** Registry mirror that containerd uses first. */
export interface ImageMirror {
  /** `https://host:port`; `http://` without a known CA. */
  readonly url: string;
  /** PEM of the mirror's CA. Absent: a system CA. */
  readonly ca?: string;
}

/**
 * containerd's `hosts.toml` for all registries (folder `_default`). Images missing on the mirror come from their
 * registry. The CA is inside of the file, because existing machines get new contents of files but no new files.
 * @param path of this file for containerd
 */
export function mirrorHosts({ url, ca }: ImageMirror, path: string): string {
  const host = `[host.${JSON.stringify(url)}]\n  capabilities = ["pull", "resolve"]\n`;
  // containerd extracts certificates from any text of the file, and ignores this key.
  return ca ? `authority = '''\n${ca.trim()}\n'''\n\n${host}  ca = ${JSON.stringify(path)}\n` : host;
}
