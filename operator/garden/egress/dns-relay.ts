import { createSocket, type Socket as DatagramSocket, type RemoteInfo } from 'node:dgram';
import { connect, isIP, type Server, type Socket } from 'node:net';
import type { Resolver } from './resolvers.ts';

/** Questions and connections under way at a time: pods choose how many they send. */
const MOST_QUESTIONS = 256;
const MOST_CONNECTIONS = 64;
/** One server after the other is asked for so long; CoreDNS gives up after five seconds. */
const PATIENCE_MS = 1_500;
const IDLE_MS = 10_000;
const HEADER_BYTES = 12;
const LONGEST_BYTES = 4096;
const SERVFAIL = 2;
/** Answers for which, as in the C library, the next server is asked: it failed, it cannot, it will not. */
const NO_HELP = [SERVFAIL, 4, 5];

const codeOf = (answer: Buffer): number => answer[3]! & 15;

/** That the question cannot be answered. */
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
 * Passes questions about names on to this machine's own name servers, also to one that listens on its loopback, and passes the answers
 * back byte for byte. The sockets may be of another network namespace.
 */
export class DNSRelay {
  readonly #relayed: Relayed;
  readonly #sockets = new Set<Socket>();
  #questions = 0;

  constructor(relayed: Relayed) {
    this.#relayed = relayed;
    relayed.udp.on('message', (question, from) => void this.#answer(question, from));
    // An answer that cannot be delivered, a connection that cannot be taken: whoever asked is gone.
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
        // It was closed meanwhile.
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

/** The server's answer to this very question; undefined when it has none in time. */
function ask({ host, port }: Resolver, question: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    // A port of its own for each question: an answer cannot be guessed.
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
    // Connected: the kernel drops what others send.
    socket.connect(port, host, ((failed?: Error) => {
      if (failed) done(undefined);
      else if (!isDone) socket.send(question, (error) => error && done(undefined));
    }) as () => void);
  });
}

/** A connection to the server; undefined when there is none in time. */
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
