/* Echoes over a TCP connection. */
#ifndef WYEAST_STREAM_H
#define WYEAST_STREAM_H

/* Of an operation; the context is a partner. A failure ends all ranks with a sentence. */
void echo_stream(void *context);

#endif
