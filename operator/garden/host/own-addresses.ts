import { readFileSync } from 'node:fs';
import { addressList } from '../../api/address-range.ts';

/**
 * IPv4 addresses and ranges that the kernel takes for this machine's own, of the text of /proc/net/fib_trie. A list of interfaces
 * (os.networkInterfaces) lacks those whose link is down, for example Docker's bridge without containers, and their addresses answer all the
 * same. Pure.
 */
export function parseLocalAddresses(trie: string): string[] {
  const found = new Set<string>();
  let isOurTable = false;
  let address = '';
  for (const line of trie.split('\n')) {
    // In tables of their own, transparent proxies have routes that take all the world for this machine.
    if (/^\S/.test(line)) isOurTable = /^(Main|Local):/.test(line);
    address = /\|-- (\S+)$/.exec(line)?.[1] ?? address;
    const bits = /^\s+\/(\d+) \S+ LOCAL$/.exec(line)?.[1];
    if (isOurTable && bits) found.add(bits === '32' ? address : `${address}/${bits}`);
  }
  return [...found];
}

/** IPv6 addresses of this machine, of the text of /proc/net/if_inet6. Pure. */
export const parseLocalAddresses6 = (text: string): string[] =>
  [...text.matchAll(/^[0-9a-f]{32}/gm)].map(([digits]) => digits.match(/.{4}/g)!.join(':'));

/** Whether the kernel takes an address for this machine's own, now. Throws where the kernel does not tell. */
export function isOwnAddress(address: string): boolean {
  const local = parseLocalAddresses(readFileSync('/proc/net/fib_trie', 'utf8')).map((one) =>
    one.includes('/') ? one : `${one}/32`,
  );
  return addressList([...local, ...ownAddresses6().map((one) => `${one}/128`)]).has(address);
}

function ownAddresses6(): string[] {
  try {
    return parseLocalAddresses6(readFileSync('/proc/net/if_inet6', 'utf8'));
  } catch (error) {
    // A kernel without IPv6 has no such file.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
