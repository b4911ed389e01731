"""HTTP in front of the services: routes, the fast read path and problem bodies. Decides nothing about publishing."""
