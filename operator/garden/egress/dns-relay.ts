import { createSocket, type Socket as DatagramSocket, type RemoteInfo } from 'node:dgram';
import { connect, isIP, type Server, type Socket } from 'node:net';
import type { Resolver } from './resolvers.ts';

/** Concurrent questions and connections: pods choose how many they send. */
const MOST_QUESTIONS = 256;
const MOST_CONNECTIONS = 64;
/** Timeout per name server; CoreDNS gives up after five seconds. */
const PATIENCE_MS = 1_500;
const IDLE_MS = 10_000;
const HEADER_BYTES = 12;
const LONGEST_BYTES = 4096;
const SERVFAIL = 2;
/**
 * Response codes after which, as in the C library, the next server is asked: server failure, not implemented, refused.
 */
const NO_HELP = [SERVFAIL, 4, 5];

const codeOf = (answer: Buffer): number => answer[3]! & 15;

/** A SERVFAIL answer. */
function failure(question: Buffer): Buffer {
  const answer = Buffer.from(question);
  answer[2]! |= 0x80;
  answer[3] = 0x80 | SERVFAIL;
  return answer;
}

interface Relayed {
  tcp: Server;
  udp: DatagramSocket;
  resolvers: () => Promise<readonly Resolver[]>;
}

/**
 * Forwards DNS questions to this machine's name servers, including one on its loopback, and returns the answers
 * unchanged. The sockets may be in another network namespace.
 */
export class DNSRelay {
  readonly #relayed: Relayed;
  readonly #sockets = new Set<Socket>();
  #questions = 0;

  constructor(relayed: Relayed) {
    this.#relayed = relayed;
    relayed.udp.on('message', (question, from) => void this.#answer(question, from));
    // The client of an undeliverable answer or failed connection is gone.
    relayed.udp.on('error', () => {});
    relayed.tcp.on('error', () => {});
    relayed.tcp.on('connection', (socket: Socket) => void this.#connect(socket));
  }

  close(): void {
    this.#relayed.udp.close();
    this.#relayed.tcp.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #answer(question: Buffer, from: RemoteInfo): Promise<void> {
    const isQuestion = question.length >= HEADER_BYTES && question.length <= LONGEST_BYTES && question[2]! < 0x80;
    if (!isQuestion) return;
    const send = (answer: Buffer) => {
      try {
        this.#relayed.udp.send(answer, from.port, from.address, () => {});
      } catch {
        // Closed meanwhile.
      }
    };
    if (this.#questions >= MOST_QUESTIONS) return send(failure(question));
    this.#questions++;
    try {
      let answer: Buffer | undefined;
      for (const resolver of await this.#relayed.resolvers()) {
        answer = (await ask(resolver, question)) ?? answer;
        if (answer && !NO_HELP.includes(codeOf(answer))) break;
      }
      send(answer ?? failure(question));
    } finally {
      this.#questions--;
    }
  }

  async #connect(near: Socket): Promise<void> {
    if (this.#sockets.size >= 2 * MOST_CONNECTIONS) return void near.destroy();
    this.#keep(near);
    for (const resolver of await this.#relayed.resolvers()) {
      const far = await reach(resolver);
      if (!far) continue;
      this.#keep(far);
      near.on('close', () => far.destroySoon());
      far.on('close', () => near.destroySoon());
      if (near.destroyed) far.destroy();
      near.pipe(far).pipe(near);
      return;
    }
    near.destroy();
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

/** The server's answer to this question; undefined when none comes in time. */
function ask({ host, port }: Resolver, question: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    // A separate port for each question makes answers hard to guess.
    const socket = createSocket(isIP(host.replace(/%.*$/, '')) === 6 ? 'udp6' : 'udp4');
    const timer = setTimeout(() => done(undefined), PATIENCE_MS);
    let isDone = false;
    const done = (answer: Buffer | undefined) => {
      if (isDone) return;
      isDone = true;
      clearTimeout(timer);
      socket.close();
      resolve(answer);
    };
    socket.on('error', () => done(undefined));
    socket.on('message', (answer) => {
      const isAnswer = answer.length >= HEADER_BYTES && answer[2]! >= 0x80;
      if (isAnswer && answer.readUInt16BE() === question.readUInt16BE()) done(answer);
    });
    // A connected socket: the kernel drops datagrams of other senders.
    socket.connect(port, host, ((failed?: Error) => {
      if (failed) done(undefined);
      else if (!isDone) socket.send(question, (error) => error && done(undefined));
    }) as () => void);
  });
}

/** A connection to the server; undefined when none is established in time. */
function reach({ host, port }: Resolver): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const give = () => {
      socket.destroy();
      resolve(undefined);
    };
    socket.setTimeout(PATIENCE_MS, give);
    socket.once('error', give);
    socket.once('connect', () => {
      socket.removeListener('error', give);
      socket.removeAllListeners('timeout');
      resolve(socket);
    });
  });
}
