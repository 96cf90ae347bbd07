/* How much memory a process may have on this node. */
#ifndef WYEAST_NODE_MEMORY_H
#define WYEAST_NODE_MEMORY_H

/* Bytes: the machine's memory, or less where a control group (a job's, a container's) allows less. */
double memory_of_node(void);

/* Bytes that this process' control groups allow; infinite where none says. */
double memory_of_control_group(void);

#endif
