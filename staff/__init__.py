"""Tools of the instructor; nothing that students receive uses them."""
