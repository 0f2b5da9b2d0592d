"""Parts of the papers that no plan can reach; a reader of the product can skip this folder.

online, order, skip_list    a noisy function answered one point at a time, on demand
maximum_loss                the largest loss over pairs of inputs, by densities
k_norms                     noise by the cube norm and by the norm of discs
"""
