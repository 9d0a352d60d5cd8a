import { isIP } from 'node:net';
import { readText } from '../host/files.ts';

/** A name server of this machine. */
export interface Resolver {
  host: string;
  port: number;
}

const PORT = 53;
/** The C library's limit of name servers. */
const MOST = 3;
/** The file is rewritten when the machine's network changes. */
const FRESH_MS = 2_000;

/** Name servers of a resolv.conf in order; one on loopback where it has none, as in the C library. Pure. */
export function parseResolvers(text: string): Resolver[] {
  const hosts = text
    .split('\n')
    .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? '')
    .filter((host) => isIP(host.replace(/%.*$/, '')) !== 0);
  return (hosts.length > 0 ? hosts.slice(0, MOST) : ['127.0.0.1']).map((host) => ({ host, port: PORT }));
}

/** Reads this machine's name servers, at most every two seconds. */
export function resolversOf(file: string): () => Promise<Resolver[]> {
  let read: { at: number; resolvers: Promise<Resolver[]> } | undefined;
  return () => {
    if (!read || performance.now() - read.at > FRESH_MS) {
      const resolvers = readText(file).then(
        (text) => parseResolvers(text ?? ''),
        () => parseResolvers(''),
      );
      read = { at: performance.now(), resolvers };
    }
    return read.resolvers;
  };
}
